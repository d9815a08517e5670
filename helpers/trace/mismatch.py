"""Find which calls of different ranks do not match, and where the ranks' calls first differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from helpers.trace.events import Collective, Event, Trace

# Collectives whose tensors have the same size on all ranks.
_EVEN = frozenset({"all_reduce", "reduce", "broadcast"})
# With gloo, these require the same size, too. NCCL can gather tensors of different sizes if every rank
# knows all sizes.
_EVEN_OVER_GLOO = _EVEN | {"all_gather", "gather", "reduce_scatter"}
# The file of torch in which a rank that has joined early answers the DDP calls of the others.
JOIN = "distributed/algorithms/join.py"
_JOINS = frozenset({JOIN, "nn/parallel/distributed.py"})
# How many positions to examine at which the lines of one group's calls differ.
_MOST_PLACES = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """The first two calls of a group's ranks that differ.

    Attributes:
        problem: A result of `problem_of`; or "line" if both ranks made the same call, but one rank made
            it on a line that the other never reached.
        collective: The collective to which the two calls, `one` and `other`, belong.
    """

    problem: str
    collective: Collective
    one: Event
    other: Event

    @property
    def finished(self) -> bool:
        """Whether all ranks continued after these calls."""
        return self.collective.complete and _has_finished(self.collective)

    def __str__(self) -> str:
        return _differ(self.one, self.other, self.problem)


def first_difference(trace: Trace, only_stuck: bool = True) -> Difference | None:
    """Return the first calls of a group's ranks that differ; None if there are none.

    only_stuck: only look at groups with an unfinished call, because in other groups no rank waits.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[Collective]] = defaultdict(list)
    for collective in trace.collectives():
        groups[collective.group, collective.group_ranks].append(collective)
    found = []
    for collectives in groups.values():
        if only_stuck and all(map(_has_finished, collectives)):
            continue
        collectives.sort(key=lambda collective: collective.index)
        if (first := _first_of(collectives)) is not None:
            found.append(first)
    return min(found, key=lambda first: first.one.start_ns, default=None)


def _first_of(collectives: Sequence[Collective]) -> Difference | None:
    """Compare the calls that ranks made on one group, in order."""
    end, clear = len(collectives), None
    for at, collective in enumerate(collectives):
        if (problem := problem_of(collective)) is not None:
            one, other = _differing_calls(collective, problem)
            end, clear = at, Difference(problem, collective, one, other)
            break
    # An extra call only shows when a later call has a different kind or size, or when a rank waits at
    # the end. Until then, each call was paired with one of the same kind from a different line.
    return _surplus(collectives, end) or clear


def _surplus(collectives: Sequence[Collective], end: int) -> Difference | None:
    """Find the first call that one rank made and another did not, if all calls look alike."""
    numbers: dict[object, int] = {}
    made: dict[int, list[Event]] = defaultdict(list)
    lines: dict[int, list[int]] = defaultdict(list)
    for collective in collectives:
        for call in collective.calls:
            line = call.op, call.where and (call.where.file, call.where.line)
            made[call.rank].append(call)
            lines[call.rank].append(numbers.setdefault(line, len(numbers)))
    first, *others = sorted(made)
    found = []
    for other in others:
        both = lines[first], lines[other]
        pairs = enumerate(zip(*both, strict=False))
        places = (at for at, (one, two) in pairs if one != two and at < end)
        for at in islice(places, _MOST_PLACES):
            one, two = made[first][at], made[other][at]
            mine, theirs = (each[at:] for each in both)
            if _in_join(one, two) or _has_more(mine, theirs) or _has_more(theirs, mine):
                found.append(Difference("line", collectives[at], one, two))
                break
    return min(found, key=lambda difference: difference.collective.index, default=None)


def _has_more(more: Sequence[int], fewer: Sequence[int]) -> bool:
    """Return whether `more` becomes `fewer` if all lines that only `more` contains are removed.

    If a rank has its own branch with the same call, the lines differ, but neither list is the other with
    additional lines. Either list may end early, at the call in which its rank waits.
    """
    if fewer[0] not in more:
        return False
    left_out, matched = set(), 0
    for line in more:
        if matched == len(fewer):
            break
        if line == fewer[matched]:
            matched += 1
        else:
            left_out.add(line)
    return matched > 0 and left_out.isdisjoint(fewer)


def _in_join(one: Event, two: Event) -> bool:
    """Return whether a learner's own call was paired with a call that join() makes to answer those of DDP."""
    return any(not a.by and b.by in _JOINS for a, b in ((one, two), (two, one)))


def _has_finished(collective: Collective) -> bool:
    return all(call.finished for call in collective.calls)


def problem_of(collective: Collective) -> str | None:
    """Return what does not match between the calls of one collective, or None.

    The result is "op", "root", "shape", "dtype", "reduce_op", or "splits" (one rank sends more or fewer
    elements than the other expects).
    """
    calls = collective.calls
    if len({call.op for call in calls}) > 1:
        return "op"
    if len({call.root for call in calls}) > 1:
        return "root"
    given = [call for call in calls if call.shapes]
    if collective.op in (_EVEN if _has_finished(collective) else _EVEN_OVER_GLOO):
        # Compare bytes, not shapes, because tensors of shapes (2, 3) and (6,) work together.
        if len({call.nbytes for call in given}) > 1:
            return "shape"
        if len({call.dtype for call in given}) > 1:
            return "dtype"
    if len({call.reduce_op for call in calls}) > 1:
        return "reduce_op"
    return "splits" if _unequal_splits(collective) is not None else None


def _unequal_splits(collective: Collective) -> tuple[Event, Event] | None:
    """Return two calls, of which the first sends more or fewer elements than the second expects."""
    place = {rank: at for at, rank in enumerate(collective.group_ranks)}
    for giver in collective.calls:
        for taker in collective.calls:
            amounts = _amounts(giver, taker, place)
            if amounts is not None and amounts[0] != amounts[1]:
                return giver, taker
    return None


def _amounts(giver: Event, taker: Event, place: dict[int, int]) -> tuple[int, int] | None:
    """Return how many elements `giver` sends to `taker` in a collective, and how many `taker` expects."""
    to, source = place.get(taker.rank, 0), place.get(giver.rank, 0)
    takes = taker.takes[:1] if taker.op == "scatter" else taker.takes[source : source + 1]
    gives = giver.gives[to : to + 1]
    return (gives[0], takes[0]) if gives and takes else None


def mismatch_in(trace: Trace) -> str:
    """Describe in one sentence which calls do not match, or return "" if all do.

    A rank that gloo aborted cannot report the reason, but its trace and those of its peers show it.
    """
    difference = first_difference(trace, only_stuck=False)
    if difference is not None and difference.problem not in {"root", "reduce_op"}:
        return str(difference)
    for message in trace.messages():
        recv = message.recv
        # gloo moves bytes: if only the dtype differs, there is no error but the values are wrong.
        if recv is not None and message.send.dtype != recv.dtype and not recv.finished:
            return (
                f"rank {message.src} sends {message.send.dtype}{at(message.send)}, but rank "
                f"{message.dst} receives into {recv.dtype}{at(recv)}: the dtypes must be the same."
            )
        if recv is not None and message.send.nbytes > recv.nbytes:
            return (
                f"rank {message.src} sends {_size(message.send)}{at(message.send)}, "
                f"but rank {message.dst} receives into {_size(recv)}{at(recv)}: "
                "the buffer must be at least as large as the message."
            )
    return ""


def _differing_calls(collective: Collective, problem: str) -> tuple[Event, Event]:
    """Return two calls of a collective that differ."""
    if problem == "splits":
        pair = _unequal_splits(collective)
        assert pair is not None
        return pair
    first = collective.calls[0]
    other = next(
        c for c in collective.calls if comparison_key(c, problem) != comparison_key(first, problem)
    )
    return first, other


def _differ(one: Event, other: Event, problem: str) -> str:
    """Describe how two calls differ."""
    if problem == "splits":
        amounts = _amounts(one, other, {rank: at for at, rank in enumerate(one.group_ranks)})
        assert amounts is not None
        return (
            f"rank {one.rank} sends {_elements(amounts[0])} to rank {other.rank} in "
            f"{one.call}{at(one)}, while rank {other.rank} expects {_elements(amounts[1])} from rank "
            f"{one.rank}{at(other)}."
        )
    return (
        f"rank {one.rank} calls {_described(one, problem)}{at(one)}, while "
        f"rank {other.rank} calls {_described(other, problem)}{at(other)}."
    )


def comparison_key(event: Event, problem: str) -> object:
    """Return the part of a call that must be the same in all calls of a collective."""
    return {
        "op": event.op,
        "shape": event.nbytes,
        "dtype": event.dtype,
        "root": event.root,
        "reduce_op": event.reduce_op,
    }[problem]


def _described(event: Event, problem: str) -> str:
    if problem in {"op", "line"}:
        return event.call
    if problem == "root":
        return f"{event.call} with root {event.root}"
    if problem == "reduce_op":
        return f"{event.call} with {event.reduce_op}"
    return f"{event.call} of {_size(event)}"


def _size(event: Event) -> str:
    shape = event.shapes[0] if event.shapes else ()
    return f"{'x'.join(map(str, shape)) or 'one'} {event.dtype}"


def _elements(count: int) -> str:
    return f"{count} element{'s' * (count != 1)}"


def at(event: Event) -> str:
    """Return the place of a call, in parentheses, or "" if it is unknown."""
    return f" ({event.where})" if event.where else ""
