"""Two thousand slow programs on an overloaded machine: none of them is reported as stuck.

Each run is drawn with a fixed seed from `SLOW`. Several processes launch at once, each with a separate rank
server, while other processes only occupy the cores. `REAL_RANKS_SOAK_RUNS` limits the number of runs, and
`REAL_RANKS_SOAK_FIRST` skips the first ones.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import pytest

from helpers.ranks.failures import Deadlock
from helpers.ranks.launcher import disconnect, launch
from tests.ranks.slow_programs import SLOW, STOPPED
from tests.ranks.test_watch import stopping_a_rank

RUNS = int(os.environ.get("REAL_RANKS_SOAK_RUNS", "2000"))
FIRST = int(os.environ.get("REAL_RANKS_SOAK_FIRST", "0"))
AT_ONCE = 6
SPINNING = 8
MEETING = "late_to_a_rendezvous_by_tcp"
_LAUNCHER_S = 3000


def draw_run(number: int) -> tuple[str, int, float, bool]:
    """Return the run of this number: its program, world size, delay, and whether it is recorded."""
    draw = random.Random(number)
    name = draw.choice(sorted(SLOW))
    return name, draw.choice([2, 2, 2, 3, 4]), round(draw.uniform(0.2, 1.5), 2), draw.random() < 0.7


def run_one(number: int) -> dict[str, object]:
    """Launch one run, and return its result in words."""
    name, world_size, delay, recorded = draw_run(number)
    work, init = SLOW[name]
    with stopping_a_rank(delay, must=False) if name in STOPPED else nullcontext():
        run = launch(
            work,
            world_size,
            args=(delay,),
            init=init,
            trace=recorded,
            timeout=60,
            on_failure="return",
        )
    said = "" if run.ok else f"{type(run.failure).__name__}: {run.failure}"
    alarm = isinstance(run.failure, Deadlock)
    return {"number": number, "name": name, "alarm": alarm, "said": said}


def launch_some(first: int, beyond: int, step: int) -> None:
    """Run every `step`-th of the runs in this process, and print a line for each."""
    for number in range(first, beyond, step):
        print(json.dumps(run_one(number)), flush=True)
    disconnect()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Occupy the cores with `count` processes during the block. Each would also end without help."""
    loop = f"import time; end = time.time() + {_LAUNCHER_S}\nwhile time.time() < end: pass"
    workers = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(count)]
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait(10)


def meet_often(first: int, beyond: int, step: int) -> None:
    """Connect two ranks by TCP, again and again. A rank whose first try fails sleeps until the next."""
    for number in range(first, beyond, step):
        run = launch(SLOW[MEETING][0], 2, args=(0.0,), init=False, timeout=60, on_failure="return")
        alarm = isinstance(run.failure, Deadlock)
        said = "" if run.ok else f"{type(run.failure).__name__}: {run.failure}"
        print(
            json.dumps({"number": number, "name": MEETING, "alarm": alarm, "said": said}),
            flush=True,
        )
    disconnect()


def _lines_of(offset: int, launches: str = "launch_some") -> list[dict[str, object]]:
    call = f"{launches}({FIRST + offset}, {FIRST + RUNS}, {AT_ONCE})"
    command = [sys.executable, "-c", f"from tests.ranks.test_false_alarms import *; {call}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LAUNCHER_S)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.soak
@pytest.mark.timeout(_LAUNCHER_S + 100)
def test_busy_machine_causes_no_false_alarm() -> None:
    began = time.monotonic()
    with busy(SPINNING), ThreadPoolExecutor(AT_ONCE) as pool:
        found = [each for some in pool.map(_lines_of, range(AT_ONCE)) for each in some]
    kinds = Counter(str(each["name"]) for each in found)
    failed = [each for each in found if each["said"]]
    alarms = [each for each in failed if each["alarm"]]
    print(
        f"\n{len(found)} runs of {len(kinds)} kinds in {time.monotonic() - began:.0f} s, load "
        f"{os.getloadavg()[0]:.0f}: {len(alarms)} false alarms, {len(failed) - len(alarms)} other failures"
    )
    for each in failed:
        print(f"  run {each['number']}, {draw_run(int(str(each['number'])))}: {each['said']}")
    assert len(found) == RUNS
    assert not failed


@pytest.mark.soak
@pytest.mark.timeout(_LAUNCHER_S + 100)
def test_delayed_connection_causes_no_false_alarm() -> None:
    with busy(SPINNING), ThreadPoolExecutor(AT_ONCE) as pool:
        lines = pool.map(_lines_of, range(AT_ONCE), ["meet_often"] * AT_ONCE)
        found = [each for some in lines for each in some]
    assert len(found) == RUNS
    assert not [each for each in found if each["said"]]
