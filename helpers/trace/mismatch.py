"""Find mismatched calls of different ranks, and the first difference between the calls of a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from helpers.trace.events import Collective, Event, Trace
from helpers.trace.frames import MAX_CALLERS

# Collectives whose tensors have the same size on all ranks.
_SAME_SIZE_OPS = frozenset({"all_reduce", "reduce", "broadcast"})
# With gloo, these also require the same size. NCCL can gather tensors of different sizes if every rank
# knows all sizes.
_SAME_SIZE_OPS_GLOO = _SAME_SIZE_OPS | {"all_gather", "gather", "reduce_scatter"}
# Problems of the tensors that ranks pass to the same collective.
TENSOR_PROBLEMS = frozenset({"shape", "dtype", "splits"})
# The file of torch in which a rank inside join() answers the DDP calls of the others.
JOIN_FILE = "distributed/algorithms/join.py"
_JOIN_FILES = frozenset({JOIN_FILE, "nn/parallel/distributed.py"})
# The numbers of lines that may distinguish two calls: a call's line, and the lines of its callers.
_DEPTHS = range(1, MAX_CALLERS + 2)
# Maximum number of positions with different lines to examine in one group's calls.
_MAX_PLACES = 20
# Maximum number of tensors of one call whose sizes are listed.
_MAX_NAMED_TENSORS = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """The first two differing calls of a group's ranks.

    Attributes:
        problem: A result of `find_problem`; or "line" if both ranks made the same call, but one rank made
            it on a line that the other never reached.
        collective: The collective to which the two calls, `call` and `other_call`, belong.
        skipping: The rank that has left out some calls of its usual order; None if unknown.
    """

    problem: str
    collective: Collective
    call: Event
    other_call: Event
    skipping: int | None = None

    @property
    def finished(self) -> bool:
        """Whether all ranks continued after these calls."""
        return self.collective.complete and _have_all_finished(self.collective)

    def __str__(self) -> str:
        return _describe_difference(self.call, self.other_call, self.problem)


def first_difference(trace: Trace, only_stuck: bool = True) -> Difference | None:
    """Return the first differing calls of a group's ranks; None if there are none.

    only_stuck: whether to look only at groups with an unfinished call, because in other groups no rank waits.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[Collective]] = defaultdict(list)
    for collective in trace.collectives():
        groups[collective.group, collective.group_ranks].append(collective)
    differences = []
    for collectives in groups.values():
        if only_stuck and all(map(_have_all_finished, collectives)):
            continue
        collectives.sort(key=lambda collective: collective.index)
        if (first := _first_difference_in_group(collectives)) is not None:
            differences.append(first)
    return min(differences, key=lambda first: first.call.start_ns, default=None)


def _first_difference_in_group(collectives: Sequence[Collective]) -> Difference | None:
    """Compare the ranks' calls on one group, in order."""
    end, plain_difference = len(collectives), None
    for index, collective in enumerate(collectives):
        if (problem := find_problem(collective)) is not None:
            one, other = _find_differing_calls(collective, problem)
            end, plain_difference = index, Difference(problem, collective, one, other)
            break
    # An extra call becomes visible only when a later call has a different kind or size, or when a rank
    # waits at the end. Until then, each call was paired with a call of the same kind from a different line.
    # If one helper function makes all calls, they differ only in their callers.
    extra_calls = (_find_extra_call(collectives, end, depth) for depth in _DEPTHS)
    difference = next(filter(None, extra_calls), plain_difference)
    if difference is None:
        return None
    index = difference.collective.index
    before = [collective for collective in collectives if collective.index < index]
    if difference.problem in TENSOR_PROBLEMS and _are_at_different_lines(difference, before):
        difference = replace(difference, problem="line")
    return replace(difference, skipping=_find_skipping_rank(difference, before))


def _are_at_different_lines(difference: Difference, before: Sequence[Collective]) -> bool:
    """Return whether two calls of different sizes come from lines that should not be paired.

    If both ranks have made a call on one of the two lines, the lines are not branches for different ranks.
    """
    one, other = difference.call, difference.other_call
    if not one.path or not other.path:
        return False
    calls = [call for collective in before for call in collective.calls]
    depths = (depth for depth in _DEPTHS if one.path[:depth] != other.path[:depth])
    return any(
        call.rank == rank and call.path[:depth] == met.path[:depth]
        for depth in depths
        for call in calls
        for rank, met in ((one.rank, other), (other.rank, one))
    )


def _find_skipping_rank(difference: Difference, before: Sequence[Collective]) -> int | None:
    """Return the rank that deviates from the usual order of its calls, while the other rank follows it.

    For example, the rank has caught an exception and continued with its next step.
    """
    pair = difference.call, difference.other_call
    for right, wrong in (pair, pair[::-1]):
        expected = [_expected_calls(rank, before) for rank in (right.rank, wrong.rank)]
        earlier = {_call_key(call) for c in before for call in c.calls if call.rank == wrong.rank}
        if (
            all(_call_key(right) == key for key in expected)
            and _call_key(wrong) != _call_key(right)
            and _call_key(wrong) in earlier
        ):
            return wrong.rank
    return None


def _expected_calls(rank: int, before: Sequence[Collective]) -> object:
    """Find the previous time that a rank made its latest call, and return the key of the call after it."""
    keys = [
        _call_key(call) for collective in before for call in collective.calls if call.rank == rank
    ]
    for position in range(len(keys) - 2, -1, -1):
        if keys[position] == keys[-1]:
            return keys[position + 1]
    return None


def _call_key(call: Event) -> object:
    return call.op, call.path[:1], call.nbytes


def _find_extra_call(collectives: Sequence[Collective], end: int, depth: int) -> Difference | None:
    """Find the first extra call of a rank if all calls look alike.

    depth: the number of lines that identify a call, from its own line to its callers' lines.
    """
    numbers: dict[object, int] = {}
    calls: dict[int, list[Event]] = defaultdict(list)
    lines: dict[int, list[int]] = defaultdict(list)
    for collective in collectives:
        for call in collective.calls:
            line = call.op, call.path[:depth]
            calls[call.rank].append(call)
            lines[call.rank].append(numbers.setdefault(line, len(numbers)))
    first, *others = sorted(calls)
    differences = []
    for other in others:
        both_lines = lines[first], lines[other]
        pairs = enumerate(zip(*both_lines, strict=False))
        differing = (index for index, (one, two) in pairs if one != two and index < end)
        for index in islice(differing, _MAX_PLACES):
            one, two = calls[first][index], calls[other][index]
            own_rest, other_rest = (lines_of_rank[index:] for lines_of_rank in both_lines)
            if (
                _is_join_shadow_call(one, two)
                or _is_extension(own_rest, other_rest)
                or _is_extension(other_rest, own_rest)
            ):
                differences.append(Difference("line", collectives[index], one, two))
                break
    return min(differences, key=lambda difference: difference.collective.index, default=None)


def _is_extension(more: Sequence[int], fewer: Sequence[int]) -> bool:
    """Return whether `more` turns into `fewer` when all lines are removed that only `more` contains.

    If a rank has a separate branch with the same call, the lines differ, but neither list consists of the
    other list and additional lines. Either list may end early, at the call in which its rank is waiting.
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


def _is_join_shadow_call(call: Event, other_call: Event) -> bool:
    """Return whether a learner's call was paired with a call made by join() to answer DDP's calls."""
    return any(
        not answered.by and answering.by in _JOIN_FILES
        for answered, answering in ((call, other_call), (other_call, call))
    )


def _have_all_finished(collective: Collective) -> bool:
    return all(call.finished for call in collective.calls)


def find_problem(collective: Collective) -> str | None:
    """Return the kind of mismatch between the calls of one collective, or None.

    The kinds are "op", "root", "shape", "dtype", "reduce_op", and "splits" (one rank sends more or fewer
    elements than the other expects).
    """
    calls = collective.calls
    if len({call.op for call in calls}) > 1:
        return "op"
    if len({call.root for call in calls}) > 1:
        return "root"
    with_tensors = [call for call in calls if call.shapes]
    if collective.op in (_SAME_SIZE_OPS if _have_all_finished(collective) else _SAME_SIZE_OPS_GLOO):
        # Compare bytes, not shapes, because tensors of shapes (2, 3) and (6,) work together.
        if len({call.nbytes for call in with_tensors}) > 1:
            return "shape"
        if len({call.dtype for call in with_tensors}) > 1:
            return "dtype"
    if len({call.reduce_op for call in calls}) > 1:
        return "reduce_op"
    return "splits" if _find_unequal_splits(collective) is not None else None


def _find_unequal_splits(collective: Collective) -> tuple[Event, Event] | None:
    """Return two calls, the first of which sends more or fewer elements than the second expects."""
    positions = {rank: position for position, rank in enumerate(collective.group_ranks)}
    for sender in collective.calls:
        for receiver in collective.calls:
            counts = _element_counts(sender, receiver, positions)
            if counts is not None and counts[0] != counts[1]:
                return sender, receiver
    return None


def _element_counts(
    sender: Event, receiver: Event, positions: dict[int, int]
) -> tuple[int, int] | None:
    """Return the numbers of elements that `sender` sends to `receiver`, and that `receiver` expects."""
    receiver_index, sender_index = positions.get(receiver.rank, 0), positions.get(sender.rank, 0)
    expected = (
        receiver.takes[:1]
        if receiver.op == "scatter"
        else receiver.takes[sender_index : sender_index + 1]
    )
    sent = sender.gives[receiver_index : receiver_index + 1]
    return (sent[0], expected[0]) if sent and expected else None


def describe_mismatch(trace: Trace) -> str:
    """Describe mismatched calls in one sentence, or return "" if all calls match.

    A rank aborted by gloo cannot report the reason, but its trace and its peers' traces show it.
    """
    difference = first_difference(trace, only_stuck=False)
    if difference is not None and difference.problem not in {"root", "reduce_op"}:
        return str(difference)
    for message in trace.messages():
        recv = message.recv
        # gloo moves bytes: if only the dtype differs, there is no error, but the values are wrong.
        if recv is not None and message.send.dtype != recv.dtype and not recv.finished:
            return (
                f"rank {message.src} sends {message.send.dtype}{at(message.send)}, but rank "
                f"{message.dst} receives into {recv.dtype}{at(recv)}: the dtypes must be the same."
            )
        if recv is not None and message.send.nbytes > recv.nbytes:
            return (
                f"rank {message.src} sends {_describe_size(message.send)}{at(message.send)}, "
                f"but rank {message.dst} receives into {_describe_size(recv)}{at(recv)}: "
                "the buffer must be at least as large as the message."
            )
    return ""


def _find_differing_calls(collective: Collective, problem: str) -> tuple[Event, Event]:
    """Return two differing calls of a collective."""
    if problem == "splits":
        pair = _find_unequal_splits(collective)
        assert pair is not None
        return pair
    first = collective.calls[0]
    other = next(
        call
        for call in collective.calls
        if comparison_key(call, problem) != comparison_key(first, problem)
    )
    return first, other


def _describe_difference(one: Event, other: Event, problem: str) -> str:
    """Describe the difference between two calls."""
    if problem == "splits":
        counts = _element_counts(
            one, other, {rank: position for position, rank in enumerate(one.group_ranks)}
        )
        assert counts is not None
        return (
            f"rank {one.rank} sends {_name_count(counts[0])} to rank {other.rank} in "
            f"{one.call}{_distinguishing_place(one, other)}, while rank {other.rank} expects "
            f"{_name_count(counts[1])} from rank {one.rank}{_distinguishing_place(other, one)}."
        )
    return (
        f"rank {one.rank} calls {_describe_call(one, problem)}{_distinguishing_place(one, other)}, while "
        f"rank {other.rank} calls {_describe_call(other, problem)}{_distinguishing_place(other, one)}."
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


def is_gradient_call(call: Event) -> bool:
    """Return whether a call in a backward pass comes from DDP's reducer in C++ or a communication hook."""
    hook = call.by.startswith("distributed/algorithms/ddp_comm_hooks/")
    return hook or (call.op == "all_reduce" and call.by == "autograd/graph.py")


def _describe_call(event: Event, problem: str) -> str:
    if problem in {"op", "line"}:
        return f"{event.call} in backward()" if is_gradient_call(event) else event.call
    if problem == "root":
        return f"{event.call} with root {event.root}"
    if problem == "reduce_op":
        return f"{event.call} with {event.reduce_op}"
    return f"{event.call} of {_describe_size(event)}"


def _describe_size(event: Event) -> str:
    return describe_tensors(event.shapes, event.dtype)


def describe_tensors(shapes: Sequence[tuple[int, ...]], dtype: str) -> str:
    """Describe the tensors of a call: "2x3 float32", or "2 tensors (1 and 2 float32)"."""
    names = ["x".join(map(str, shape)) or "one" for shape in shapes or [()]]
    if len(names) == 1:
        return f"{names[0]} {dtype}".rstrip()
    if len(set(names)) == 1:
        return f"{len(names)} tensors (each of {names[0]} {dtype})"
    listed = ", ".join(names[:-1]) + f" and {names[-1]}"
    if len(names) > _MAX_NAMED_TENSORS:
        listed = ", ".join(names[:_MAX_NAMED_TENSORS]) + ", ..."
    return f"{len(names)} tensors ({listed} {dtype})"


def _name_count(count: int) -> str:
    return f"{count} element{'s' * (count != 1)}"


def _distinguishing_place(event: Event, other_event: Event) -> str:
    """Return the place of a call. If both calls are on the same line, add the first different caller."""
    if event.where is not None and event.where == other_event.where:
        for position, caller in enumerate(event.callers):
            if other_event.callers[position : position + 1] != (caller,):
                return f" ({event.where}, called from {caller})"
    return at(event)


def at(event: Event) -> str:
    """Return the place of a call, in parentheses, or "" if it is unknown."""
    return f" ({event.where})" if event.where else ""
