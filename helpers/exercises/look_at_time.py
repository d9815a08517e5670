"""The first thing to look at when an answer's time is up, whatever the exercise; called by `judge`."""

from __future__ import annotations

from helpers.checks.rules_transfers import named
from helpers.ranks.failures import RankTimeout
from helpers.ranks.run import Run
from helpers.trace.mismatch import at


def look_at_time(run: Run) -> str:
    """Name a transfer that nobody waits for, or say whether the ranks compute or wait."""
    if not isinstance(run.failure, RankTimeout):
        return ""
    if unwaited := look_at_unwaited(run):
        return unwaited
    waits = run.failure.waits
    if waits and all(wait.event is not None for wait in waits):
        return "Every rank sits in a call that nobody answers: who has to answer the first one?"
    return "A loop that does not end, or far more work than the task needs."


def look_at_unwaited(run: Run) -> str:
    """Name a transfer that nobody has waited for and that was not seen to end."""
    for event in run.trace.calls:
        if event.asynchronous and event.wait_ns is None and event.end_ns is None:
            return (
                f"Rank {event.rank} never waits for its {named(event)}{at(event)}. Under gloo a "
                f"transfer is over, and sure to happen at all, only when wait() has returned: keep the "
                f"Work that the call returns. is_completed() stays False until then."
            )
    return ""
