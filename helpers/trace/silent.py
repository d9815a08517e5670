"""Describe recorded faults that raise no error: tensors of different dtypes, and calls without a wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from helpers.trace.events import Event, Place, Trace
from helpers.trace.mismatch import at

_MAX_NOTES = 3
# Collectives that combine or copy the elements of all ranks' tensors, byte by byte.
_OPS = frozenset({"all_reduce", "reduce", "broadcast", "all_gather", "gather", "reduce_scatter"})
# Dtypes of one size whose bytes have the same meaning, at least for numbers that both dtypes can represent.
_ALIKE = (
    frozenset({"bool", "uint8", "int8"}),
    frozenset({"int16", "uint16"}),
    frozenset({"int32", "uint32"}),
    frozenset({"int64", "uint64"}),
    frozenset({"float32", "complex64"}),
    frozenset({"float64", "complex128"}),
)


def silent_faults(trace: Trace, unwaited: Sequence[Event]) -> tuple[str, ...]:
    """Return a note for each silent fault of a successful run, up to a limit.

    unwaited: the asynchronous calls whose Work was dropped without any method call.
    """
    notes = dict.fromkeys([*_different_dtypes(trace), *_calls_without_wait(unwaited)])
    return tuple(notes)[:_MAX_NOTES]


def _different_dtypes(trace: Trace) -> Iterator[str]:
    for collective in trace.collectives():
        calls = [call for call in collective.calls if call.shapes and call.op in _OPS]
        for call in calls[1:]:
            if call.op == calls[0].op and _differ(calls[0], call):
                yield _describe_dtypes(calls[0], call)
                break
    for message in trace.messages():
        if message.recv is not None and _differ(message.send, message.recv):
            yield _describe_dtypes(message.send, message.recv)


def _differ(call: Event, other_call: Event) -> bool:
    dtypes = {call.dtype, other_call.dtype}
    return (
        len(dtypes) > 1
        and call.nbytes == other_call.nbytes > 0
        and not any(dtypes <= alike for alike in _ALIKE)
    )


def _describe_dtypes(one: Event, other: Event) -> str:
    return (
        f"rank {one.rank} passes {one.dtype} to {one.call}{at(one)}, rank {other.rank} {other.dtype} to "
        f"{other.call}{at(other)}: the bytes are not converted, so the values are wrong. Pass the same dtype."
    )


def _calls_without_wait(unwaited: Sequence[Event]) -> Iterator[str]:
    ranks: dict[tuple[str, Place | None], set[int]] = defaultdict(set)
    events: dict[tuple[str, Place | None], Event] = {}
    for event in unwaited:
        ranks[event.call, event.where].add(event.rank)
        events.setdefault((event.call, event.where), event)
    for key, event in events.items():
        names = ", ".join(map(str, sorted(ranks[key])))
        yield (
            f"rank{'s' * (len(ranks[key]) > 1)} {names} never waited for {event.call}{at(event)}: before the "
            "wait() of its Work, the transfer may not be complete. Keep the Work, and call its wait()."
        )
