"""A sandbox that uses up and holds a user's resources costs its neighbors no points."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import cloudpickle
import psutil
import pytest

from helpers.grading.sandbox.batch_lock import BatchLock
from helpers.grading.sandbox.levels import Plan, Sandbox
from helpers.grading.submissions import Job
from helpers.ranks.launch_options import Options
from helpers.ranks.launcher import run_on_ranks
from helpers.ranks.processes import prctl
from tests.grading.hostile import used_up
from tests.grading.hostile.conftest import SLOT, grader_of
from tests.grading.notebooks import RIGHT, write_notebook
from tests.submission_files import all_samples

_PR_SET_NAME = 15
HOLDS = f"holds-{os.getpid()}"
"""The name that the rank takes when it holds all available resources, visible from outside."""
HOLD_S, WITHIN_S = 6.0, 120.0
CHECKPOINT = "checkpoint_and_resume"

pytestmark = pytest.mark.timeout(600)

Use = Callable[[], tuple[int, int]]


def hold(rank: int, world_size: int, use: Use, name: str, seconds: float) -> tuple[int, int]:
    found = use()
    prctl(_PR_SET_NAME, name.encode())
    time.sleep(seconds)
    return found


def _hold_in_a_sandbox(plan: Plan, use: Use, told: int) -> None:
    """Act as another grader of the same batch, whose answer uses up a resource; write the amount."""
    modules = [used_up, sys.modules[__name__]]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # a sandbox cannot import the tests
    own = Plan(plan.level, plan.staged, plan.limits, plan.lock)  # with a separate template
    with own, Sandbox(own, SLOT + 1) as sandbox, own.lock.hold_shared():
        run = run_on_ranks(
            hold,
            Options(1, timeout=100),
            args=(use, HOLDS, HOLD_S),
            connection=sandbox.connection,
        )
    assert run.ok, run.failure
    os.write(told, json.dumps(run.values[0]).encode())


@contextmanager
def neighbor(plan: Plan, use: Use) -> Iterator[Callable[[], tuple[int, int]]]:
    """Run another grader that holds a used-up resource; yield a function that waits for the held amount."""
    got, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(got)
            _hold_in_a_sandbox(plan, use, told)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(told)
    try:
        deadline = time.monotonic() + WITHIN_S
        while not any(p.info["name"] == HOLDS for p in psutil.process_iter(["name"])):
            assert time.monotonic() < deadline and os.waitpid(pid, os.WNOHANG)[0] == 0
            time.sleep(0.02)
        yield lambda: json.loads(os.read(got, 1000))
    finally:
        with suppress(ProcessLookupError, ChildProcessError):  # it has failed with a message
            os.kill(pid, signal.SIGKILL)  # its sandbox ends with it
            os.waitpid(pid, 0)
        os.close(got)


def graded(plan: Plan, folder: Path) -> dict[str, float]:
    """Grade an honest learner's two notebooks, with ranks that send and a watched folder."""
    right = next(s for s in all_samples() if s.right and s.exercise == CHECKPOINT)
    notebooks = {"02_blocking_p2p": RIGHT, right.notebook: right.source}
    points = {}
    grader = grader_of(plan)
    for name, cell in notebooks.items():
        path = write_notebook(folder / f"{name}.ipynb", cell)
        record = grader.grade(Job("anna", path, path.name))
        points |= {e.name: e.points for e in record.exercises if e.points}
        print([(e.name, e.outcome, e.message) for e in record.exercises if e.key])
    return points


@pytest.mark.extended
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(use, marks=() if use is used_up.pending_signals else pytest.mark.soak)
        for use in used_up.USES_UP
    ],
    ids=lambda use: use.__name__,
)
def test_resource_hogging_neighbor_costs_no_points(use: Use, plan: Plan, tmp_path: Path) -> None:
    shared = replace(plan, lock=BatchLock(str(tmp_path / "turns")))
    began = time.monotonic()
    with neighbor(shared, use) as wait:
        points = graded(shared, tmp_path)
        seconds = time.monotonic() - began
        count, number = wait()
    print(f"{use.__name__} got {count:,}, then {errno.errorcode.get(number)}; {seconds:.0f} s")
    assert points == {"ping_pong": 10.0, CHECKPOINT: 10.0}
    assert number in used_up.USES_UP[use]
    assert (count == 0) is (use in used_up.NOTHING)
