"""Describe differing collectives of a group's ranks, with advice on each difference."""

from __future__ import annotations

from helpers.trace.events import Diagnosis, Trace
from helpers.trace.mismatch import (
    JOIN_FILE,
    TENSOR_PROBLEMS,
    Difference,
    at,
    comparison_key,
    describe_mismatch,
    first_difference,
    is_gradient_call,
)
from helpers.trace.waits import StuckWorld
from helpers.trace.wording import name_ranks


def describe_different_calls(
    difference: Difference, world: StuckWorld, present: Diagnosis | None
) -> Diagnosis:
    """Describe the first differing calls. If they have finished, `present` explains the current waits."""
    problem, members = difference.problem, difference.collective.group_ranks
    has_tensor_problem = problem in TENSOR_PROBLEMS
    advice = _advice_on(difference)
    if difference.finished or problem == "line":
        # The trace includes calls of earlier cells, so a reader could not find this call by counting.
        place = "" if world.trace.earlier else f" at call {difference.collective.index + 1}"
        if set(members) != set(range(world.trace.world_size)):
            place += f" in the group of {name_ranks(members)}"
        first = f"The ranks' calls first differ{place}: "
        summary = f"{first}{difference}"
        if present is not None and present.kind != "skipped_backward":
            summary += f" {present.summary}"
        advice += " " + (_WRONG_PAIRS_NOTE if problem == "line" else _NO_ERROR_NOTE)
    else:
        difference_text = _DIFFERENCE_TEXTS.get(
            problem, "call different collectives at the same point"
        )
        summary = f"The ranks {difference_text}: {difference}"
    if difference.skipping is not None:
        summary += " " + _SKIPPING_TEXT.format(difference.skipping)
    group = difference.collective.group
    if any(event.by == JOIN_FILE for event in world.trace if event.group == group):
        advice += " " + _JOIN_ADVICE
    kind = "different_shapes" if has_tensor_problem else "mismatched_collectives"
    return world.diagnosis(kind, summary, advice, _minority_ranks(difference))


def explain_mismatch(trace: Trace) -> str:
    """Describe mismatched calls of ranks aborted by gloo, with advice; return "" if all calls match."""
    text = describe_mismatch(trace)
    difference = first_difference(trace, only_stuck=False)
    if difference is None or text != str(difference):
        return text
    if difference.skipping is not None:
        text += " " + _SKIPPING_TEXT.format(difference.skipping)
    return f"{text} {_advice_on(difference)}"


def _advice_on(difference: Difference) -> str:
    one, other = difference.call, difference.other_call
    if difference.skipping is not None:
        return _SKIPPING_ADVICE
    if difference.problem in {"op", "line"} and is_gradient_call(one) != is_gradient_call(other):
        behind = other if is_gradient_call(one) else one
        return _UNEVEN_ADVICE.format(behind=behind.rank, call=f"{behind.call}{at(behind)}")
    if difference.problem == "op" and _ROLL_CALL in {one.call, other.call}:
        instead = other if one.call == _ROLL_CALL else one
        return _ROLL_CALL_ADVICE.format(rank=instead.rank, call=f"{instead.call}{at(instead)}")
    if difference.problem == "shape" and len(one.shapes) != len(other.shapes):
        return _COALESCED_ADVICE
    return _ADVICE_ON_CALLS.get(difference.problem, _SAME_CALLS_ADVICE)


def _minority_ranks(difference: Difference) -> tuple[int, ...]:
    """Return the ranks whose call differs from the majority's, or all ranks if there is no majority."""
    if difference.problem in {"line", "splits"}:
        return (difference.call.rank, difference.other_call.rank)
    counts: dict[object, list[int]] = {}
    for call in difference.collective.calls:
        counts.setdefault(comparison_key(call, difference.problem), []).append(call.rank)
    majority = max(len(ranks) for ranks in counts.values())
    # If two halves differ, neither is the minority.
    if sum(len(ranks) == majority for ranks in counts.values()) > 1:
        return tuple(call.rank for call in difference.collective.calls)
    return tuple(
        rank for ranks in counts.values() if len(ranks) < majority for rank in sorted(ranks)
    )


_SKIPPING_TEXT = "Rank {0} has left out calls here that it made in an earlier round."
_SKIPPING_ADVICE = (
    "Look for a branch, a `continue` or an `except` on that rank: a rank that skips a step, or catches an "
    "exception such as out of memory, must still make the calls that the others make. Otherwise let all "
    "ranks skip the step together."
)
_UNEVEN_ADVICE = (
    "If rank {behind} has no batches left, give all ranks the same number of batches, or use DDP's join(). "
    "If only rank {behind} reaches its {call}, as in an evaluation on one rank, let all ranks make "
    "that call, or none."
)
_ROLL_CALL = "monitored_barrier"
_ROLL_CALL_ADVICE = (
    "monitored_barrier is also a collective: rank {rank} must call it before its {call}, or no rank may "
    "call it. It names missing ranks only after its timeout."
)
_COALESCED_ADVICE = "Inside the coalescing block, every rank must make the same calls."
_DIFFERENCE_TEXTS = {
    "shape": "pass tensors of different sizes to the same collective",
    "dtype": "pass tensors of different dtypes to the same collective",
    "splits": "send and expect different numbers of elements in the same collective",
    "root": "pass different roots to the same collective",
    "reduce_op": "pass different ops to the same collective",
}
_SAME_CALLS_ADVICE = "All members of a group must call the same collectives in the same order."
_SAME_TENSORS_ADVICE = "Pass a contiguous tensor of the same shape and dtype on every rank."
_ADVICE_ON_CALLS = {
    "shape": _SAME_TENSORS_ADVICE,
    "dtype": _SAME_TENSORS_ADVICE,
    "root": "All members of a group must pass the same root: the same `src` in broadcast and scatter, the "
    "same `dst` in reduce and gather.",
    "reduce_op": "All members of a group must reduce with the same op.",
    "splits": "Each rank must expect as many elements as the other rank sends: input_split_sizes[j] of rank "
    "i must equal output_split_sizes[i] of rank j. If the sizes are not known in advance, exchange them "
    "first.",
    "line": "Look at the calls on these two lines: all members of the group must make each of them, or none.",
}
_WRONG_PAIRS_NOTE = (
    "Each later collective was paired with the wrong one, so its result may also be wrong."
)
_NO_ERROR_NOTE = "The call raised no error, but its result is wrong on at least one rank."
_JOIN_ADVICE = (
    "Within join(), a rank that has no batches left takes part only in the calls that DDP makes. Make "
    "your own calls after the `with` block."
)
