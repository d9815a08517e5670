"""Measure the time from the last rank's block to the exception, for each kind of deadlock."""

from __future__ import annotations

import time

from helpers.ranks.failures import Deadlock
from helpers.ranks.launcher import connect, launch
from tests.benchmarks.timing import Figure, median, spread
from tests.ranks.stuck_programs import STUCK, Stuck

RUNS = 7


def by_kind() -> list[Figure]:
    """Measure each kind. The last row combines all runs of all kinds."""
    connect().preload()
    figures, every = [], []
    for name, program in STUCK.items():
        plain = median([_plain_launch(program) for _ in range(5)])
        times = [_time_to_exception(program, plain) for _ in range(RUNS)]
        every += times
        what = f"deadlock named: {name.replace('_', ' ')}, {program.world_size} ranks"
        figures.append(Figure(what, spread(times), "", "", "≤ 1 s, each"))
    compared = "gloo alone: 30 min"
    figures.append(
        Figure("deadlock named, all kinds", spread(every), compared, "", "≤ 0.3 s, median")
    )
    return figures


def _plain_launch(program: Stuck) -> float:
    start = time.monotonic()
    launch(lambda rank, n: None, program.world_size, init=program.init)
    return time.monotonic() - start


def _time_to_exception(program: Stuck, plain: float) -> float:
    """Return the seconds from the last rank's block to the exception, in one run.

    For ranks waiting in a call, the start of the wait was recorded. For all others it is unknown, so
    the time when a launch that does nothing would have ended is used instead.
    """
    start = time.monotonic()
    run = launch(
        program.work, program.world_size, init=program.init, on_failure="return", timeout=60
    )
    ended = time.monotonic()
    assert isinstance(run.failure, Deadlock), run.failure
    events = [wait.event for wait in run.failure.diagnosis.waits]
    known = [event.start_ns / 1e9 for event in events if event is not None]
    gone = [wait for wait in run.failure.diagnosis.waits if wait.state.startswith("has")]
    if known and len(known) + len(gone) == program.world_size:
        return ended - max(known)
    return max(0.0, ended - start - plain)
