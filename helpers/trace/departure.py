"""Find the rank that left a group during communication, because its peers report only a lost connection."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at
from helpers.trace.wording import name_ranks

LEAVE_TOGETHER_ADVICE = (
    "All ranks must leave in the same step. If one rank decides to leave, for example because its "
    "loss is NaN, let all ranks know first: put a flag of 0 or 1 into a tensor, call "
    "dist.all_reduce(flag, "
    "op=dist.ReduceOp.MAX) in each step on every rank, and leave if it is 1."
)


@dataclass(frozen=True)
class Departure:
    """The ranks that left first, with a description of the departure and advice."""

    ranks: tuple[int, ...]
    summary: str
    advice: str


def find_departure(trace: Trace, returned: Collection[int]) -> Departure | None:
    """Return the departure of the rank that left, or None if the records do not show it.

    Args:
        trace: All calls until a connection was lost.
        returned: The ranks that have returned.
    """
    failed = [event for event in trace.calls if event.error]
    if not failed:
        return None
    first = min(failed, key=lambda event: event.end_ns or 0)
    if first.is_collective:
        return _find_missing_members(first, trace, returned)
    is_gone = first.peer is not None and not _answers(first, trace)
    return _describe([first.peer], first, returned) if is_gone and first.peer is not None else None


def _find_missing_members(call: Event, trace: Trace, returned: Collection[int]) -> Departure | None:
    for collective in trace.collectives():
        if call not in collective.calls:
            continue
        arrived = {event.rank for event in collective.calls}
        missing = [rank for rank in collective.group_ranks if rank not in arrived]
        if missing:
            # A member that has neither made the call nor returned is late: it has lost no connection itself.
            gone = [rank for rank in missing if rank in returned]
            return _describe(gone or missing, call, returned)
    return None


def _answers(call: Event, trace: Trace) -> bool:
    """Return whether the peer of a send or receive has made the matching call."""
    return any(
        message.recv is not None and call in (message.send, message.recv)
        for message in trace.messages()
    )


def _describe(ranks: Sequence[int], call: Event, returned: Collection[int]) -> Departure:
    is_single = len(ranks) == 1
    who = name_ranks(ranks).capitalize()
    action = f"{'has' if is_single else 'have'} returned"
    if not set(ranks) <= set(returned):
        # At least one of these ranks has closed its connections; the others may be late.
        who, action = who if is_single else f"One of {name_ranks(ranks)}", "has left the group"
    return Departure(
        tuple(ranks),
        f"{who} {action} without making the call in which rank {call.rank} waits: "
        f"{call.call}{at(call)}.",
        LEAVE_TOGETHER_ADVICE if call.is_collective else _counterpart_advice(ranks, call),
    )


def _counterpart_advice(ranks: Sequence[int], call: Event) -> str:
    counterpart = "recv" if call.op == "send" else "send"
    return (
        f"Let {name_ranks(ranks)} make the {counterpart} that answers this call before leaving, or let "
        f"rank {call.rank} not make this call."
    )
