"""Return advice on an asynchronous call that a rank never waits for."""

from __future__ import annotations

from collections.abc import Container

from helpers.ranks.run import Run
from helpers.trace.events import Event
from helpers.trace.mismatch import at

# Calls that write to a tensor on each calling rank.
_WRITING_OPS = frozenset({"recv", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"})


def missing_wait_advice(run: Run) -> str:
    """Return the name of a call that writes to a tensor and was never waited for, or ""."""
    event = _find_unwaited_call(run, _WRITING_OPS)
    if event is None:
        return ""
    peer = "" if event.peer is None else f" from rank {event.peer}"
    return (
        f"Rank {event.rank} never waits for its {event.call}{peer}{at(event)}. Do not read the tensor "
        "that the call writes to before wait() returns: until then, the check fills it with NaN (or "
        "the largest integer)."
    )


def missing_transfer_wait_advice(run: Run) -> str:
    """Return the name of a transfer that was never waited for, and never known to have ended, or ""."""
    event = _find_unwaited_call(run)
    if event is None:
        return ""
    preposition = "to" if event.op == "send" else "from"
    peer = "" if event.peer is None else f" {preposition} rank {event.peer}"
    return (
        f"Rank {event.rank} never waits for its {event.call}{peer}{at(event)}. With gloo, a transfer "
        "is complete only when wait() has returned, and without wait() it may never happen. Keep the "
        "Work that the call returns, and call its wait()."
    )


def _find_unwaited_call(run: Run, ops: Container[str] | None = None) -> Event | None:
    unwaited = (
        event
        for event in run.trace.calls
        if event.asynchronous and event.wait_ns is event.end_ns is None
    )
    return next((event for event in unwaited if ops is None or event.op in ops), None)
