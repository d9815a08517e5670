"""Find the rank that left a group while others still communicated: they only report a lost connection."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at

_LEAVE_TOGETHER_ADVICE = (
    "All ranks must leave in the same step. If one rank decides, for example because its loss is NaN, let "
    "all ranks learn it before they leave: put a flag of 0 or 1 into a tensor, call dist.all_reduce(flag, "
    "op=dist.ReduceOp.MAX) in each step on every rank, and leave if it is 1."
)
_BARRIER_ADVICE = (
    "No rank may disconnect before all ranks have made their last call: call dist.barrier() on every rank "
    "before destroy_process_group()."
)


@dataclass(frozen=True)
class Departure:
    """The ranks that left first, what happened, and what to do about it."""

    ranks: tuple[int, ...]
    summary: str
    advice: str


def find_departure(trace: Trace, returned: Collection[int]) -> Departure | None:
    """Return which rank left, or None if the records do not show it.

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
            # A member that is neither there nor gone is late: it has not lost anything itself.
            gone = [rank for rank in missing if rank in returned]
            return _describe(gone or missing, call, returned)
        done = [event.rank for event in collective.calls if event.finished]
        if not done:
            return None
        verb = "has" if len(done) == 1 else "have"
        return Departure(
            tuple(done),
            f"{_name_ranks(done).capitalize()} {verb} disconnected as soon as {_its(done)} own part of "
            f"{call.call}{at(call)} was done, while rank {call.rank} was still in it.",
            _BARRIER_ADVICE,
        )
    return None


def _answers(call: Event, trace: Trace) -> bool:
    """Return whether the peer of a send or receive has made the call that answers it."""
    return any(
        message.recv is not None and call in (message.send, message.recv)
        for message in trace.messages()
    )


def _describe(ranks: Sequence[int], call: Event, returned: Collection[int]) -> Departure:
    have = "has" if len(ranks) == 1 else "have"
    action = "returned" if set(ranks) <= set(returned) else "left the group"
    verb = "does" if len(ranks) == 1 else "do"
    return Departure(
        tuple(ranks),
        f"{_name_ranks(ranks).capitalize()} {have} {action}, and {verb} not make the call in which rank "
        f"{call.rank} waits: {call.call}{at(call)}.",
        _LEAVE_TOGETHER_ADVICE if call.is_collective else _counterpart_advice(ranks, call),
    )


def _counterpart_advice(ranks: Sequence[int], call: Event) -> str:
    counterpart = "recv" if call.op == "send" else "send"
    return (
        f"Let {_name_ranks(ranks)} make the {counterpart} that answers this call before leaving, or let "
        f"rank {call.rank} not make this call."
    )


def _its(ranks: Sequence[int]) -> str:
    return "its" if len(ranks) == 1 else "their"


def _name_ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}"
