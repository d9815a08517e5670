"""Describe each rank's position at the failure of a run: its part in the failure, or its last call."""

from __future__ import annotations

from helpers.ranks.failures import (
    Deadlock,
    HostLost,
    RankDied,
    RankFailed,
    RankTimeout,
    describe_call,
    describe_wait,
)
from helpers.ranks.run import Run


def endings(run: Run) -> dict[int, str]:
    """Return one line about the end of each rank of a failed run."""
    failure = run.failure
    if isinstance(failure, Deadlock | RankTimeout):
        return {wait.rank: describe_wait(wait) for wait in failure.waits}
    if isinstance(failure, RankFailed):
        because = f"because of rank {failure.rank}"
        after = {e.rank: f"then {e.kind}, {because}" for e in failure.consequences}
        return {**_interrupted_calls(run), **after, failure.rank: f"raised {failure.error.kind}"}
    if isinstance(failure, HostLost):
        others = {wait.rank: describe_wait(wait) for wait in failure.waits}
        return {**others, **dict.fromkeys(failure.ranks, f"lost with {failure.host}")}
    if isinstance(failure, RankDied):
        how = (
            f"terminated by {failure.signal}" if failure.signal else f"exit code {failure.exitcode}"
        )
        return {**_interrupted_calls(run), failure.rank: how}
    return {}


def _interrupted_calls(run: Run) -> dict[int, str]:
    """Return the call in which each rank waited when all ranks were terminated."""
    found = {}
    for event in run.trace.calls:
        if event.end_ns is None and event.wait_ns is not None:
            where = f" at {event.where}" if event.where else ""
            found[event.rank] = f"was in {describe_call(event)}{where}"
    return found
