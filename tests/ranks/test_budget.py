"""A world is charged for the time that it used, not for the time when others kept it waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from helpers.ranks.budget import MAX_BUDGET_FACTOR, Budget, rank_pids
from helpers.ranks.connection import Connection
from helpers.ranks.failures import RankTimeout
from helpers.ranks.launch_options import Caller, Options
from helpers.ranks.launcher import connect, launch
from helpers.ranks.process_snapshot import Times, process_times
from helpers.ranks.world import Member, World

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux")

_SPIN = """
import os, time
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
end = time.time() + 120
while time.time() < end: pass
"""


@contextmanager
def spinning(count: int) -> Iterator[list[int]]:
    """Run `count` busy processes on two cores during the block. Each would also end without help."""
    workers = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        yield [worker.pid for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(10)


def work_for(seconds: float) -> None:
    """Use `seconds` of processor time, however long this takes."""
    while time.process_time() < seconds:
        pass


@pytest.mark.extended
def test_sleeping_world_consumes_full_budget() -> None:
    with spinning(4):
        start = time.monotonic()
        run = launch(lambda r, n: time.sleep(60), 2, timeout=1.5, on_failure="return")
        took = time.monotonic() - start
    assert isinstance(run.failure, RankTimeout)
    assert not run.failure.was_computing
    assert 1.4 < took < 1.5 * MAX_BUDGET_FACTOR


def test_timeout_reports_much_longer_elapsed_time() -> None:
    assert str(RankTimeout(30.0, (), elapsed_s=31.0)).startswith("timed out after 30 s; all ranks")
    says = "timed out after 376 s, of which the busy machine let it run for 100 s; all ranks were terminated"
    assert str(RankTimeout(100.0, (), elapsed_s=376.1)).startswith(says)
    says = "timed out after 300 s, of which the busy machine let it run for less than 30 s"
    assert str(RankTimeout(30.0, (), True, elapsed_s=300.0)).startswith(says)
    run = launch(lambda r, n: time.sleep(60), 2, timeout=0.5, on_failure="return")
    assert isinstance(run.failure, RankTimeout) and run.failure.elapsed_s >= 0.5


@pytest.mark.extended
def test_timeout_ends_endless_loop() -> None:
    start = time.monotonic()

    def spin(rank: int, n: int) -> None:
        while rank == 0:
            pass

    run = launch(spin, 2, timeout=1.5, on_failure="return", init=False)
    assert isinstance(run.failure, RankTimeout)
    assert 1.4 < time.monotonic() - start < 1.5 * MAX_BUDGET_FACTOR + 2


@pytest.mark.parametrize(("ran", "queued", "computing"), [(0.1, 0.0, True), (0.005, 0.095, False)])
def test_distinguishes_computing_from_queueing(ran: float, queued: float, computing: bool) -> None:
    seen = [0.0]

    def times(roots: Sequence[int]) -> dict[int, Times]:
        seen[0] += 1
        return {1: (int(seen[0] * ran * 1e9), int(seen[0] * queued * 1e9), 0)}

    budget = Budget(lambda: [1], 1.0, 0.0, times, cores=1)
    now = 0.0
    while not budget.is_spent(now):
        now += 0.1
    assert budget.was_computing is computing


@pytest.mark.extended
def test_busy_cores_cause_no_timeout() -> None:
    with spinning(8):
        run = launch(lambda r, n: work_for(2), 1, timeout=3, on_failure="return")
    assert run.ok, run.failure


@pytest.mark.extended
def test_timeout_ends_loop_on_busy_machine() -> None:
    def spin(rank: int, n: int) -> None:
        while True:
            pass

    with spinning(8):
        start = time.monotonic()
        run = launch(spin, 2, timeout=1, on_failure="return", init=False)
        took = time.monotonic() - start
    assert isinstance(run.failure, RankTimeout)
    assert took < MAX_BUDGET_FACTOR + 5


def _world_of(*pids: int) -> World:
    """Return a world without ranks, whose members are processes of the test."""
    connection: Connection = connect()
    world = World(connection, Options(len(pids)), Caller())
    world.members = [Member(rank, None, None, -1, pid=pid) for rank, pid in enumerate(pids)]  # type: ignore[arg-type]
    return world


def _share_paid(budget: Budget, seconds: float, looks: int = 4) -> float:
    """Return the charged share of a time interval."""
    budget.is_spent(time.monotonic())
    before, start = budget._left, time.monotonic()
    for _ in range(looks):
        time.sleep(seconds / looks)
        budget.is_spent(time.monotonic())
    return (before - budget._left) / (time.monotonic() - start)


@pytest.mark.extended
def test_charges_ranks_for_used_cpu_time() -> None:
    with spinning(9) as pids:  # one of them is the rank
        world = _world_of(pids[0])
        budget = Budget(lambda: rank_pids(world), 100, time.monotonic())
        try:
            assert _share_paid(budget, 2.0) < 0.8
        finally:
            world.logs.close()
            world._selector.close()


def test_charges_for_child_processes_of_ranks() -> None:
    """A shell waiting for nine loops counts as queueing, just like its loops."""
    loops = (
        "import subprocess, sys\n"
        f"for _ in range(9): subprocess.Popen([sys.executable, '-c', {_SPIN!r}])\n"
    )
    shell = subprocess.Popen(
        [sys.executable, "-c", loops + "print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert shell.stdout is not None
    world = _world_of(shell.pid)
    try:
        shell.stdout.readline()
        budget = Budget(lambda: rank_pids(world), 100, time.monotonic())
        assert len(process_times(rank_pids(world))) == 10
        budget.is_spent(time.monotonic())
        time.sleep(1)
        ran, queued = budget._measure_increase()
        assert ran > 0.1e9 and queued > 1e9
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()
        world.logs.close()
        world._selector.close()


def test_charges_nothing_before_rank_start() -> None:
    world = _world_of(0)
    try:
        budget = Budget(lambda: rank_pids(world), 0.2, time.monotonic())
        time.sleep(0.3)
        assert not budget.is_spent(time.monotonic())
        assert budget.is_spent(time.monotonic() + 0.2 * MAX_BUDGET_FACTOR), "but not forever"
    finally:
        world.logs.close()
        world._selector.close()
