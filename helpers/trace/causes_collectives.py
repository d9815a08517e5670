"""Find collectives and backward passes that do not match between the ranks of a group."""

from __future__ import annotations

from itertools import pairwise

from helpers.trace.cause import Priority, cause
from helpers.trace.events import Diagnosis, Event, Trace
from helpers.trace.mismatch import at, is_gradient_call
from helpers.trace.waits import StuckWorld
from helpers.trace.wording import does_or_do, has_or_have, is_or_are, name_group, name_ranks


@cause("group order", Priority.WRONG_LINE)
def find_group_order(world: StuckWorld) -> Diagnosis | None:
    """Find two ranks waiting for each other in collectives of two groups that contain both ranks."""
    # Each group numbers its collectives separately, so comparing calls within one group does not find this
    # cause.
    blocked = [wait for wait in world.call_waits if wait.event.is_collective]
    for one in blocked:
        for other in blocked:
            is_mutual = other.rank in one.waits_for and one.rank in other.waits_for
            if is_mutual and one.event.group != other.event.group:
                return _describe_two_groups(one.event, other.event, world)
    return None


def _describe_two_groups(one: Event, other: Event, world: StuckWorld) -> Diagnosis:
    """Describe two ranks in calls on two groups: one has left out a call, or their orders differ."""
    for skipping, waiting in ((one, other), (other, one)):
        # Some rank has made the current call of `waiting`, and then the current call of `skipping`.
        if _is_usual_order(waiting, skipping, world.trace) and not _is_usual_order(
            skipping, waiting, world.trace
        ):
            return world.diagnosis(
                "mismatched_collectives",
                f"Rank {skipping.rank} has left out {waiting.call}{at(waiting)} of "
                f"{name_group(waiting, world.trace)}, in which rank {waiting.rank} waits for it. Rank "
                f"{skipping.rank} is already in {skipping.call}{at(skipping)} of "
                f"{name_group(skipping, world.trace)}.",
                f"For each call, either all ranks of a group must make it, or none: let rank {skipping.rank} "
                f"call {waiting.call} too.",
                (skipping.rank,),
            )
    where = name_group(one, world.trace), name_group(other, world.trace)
    if where[0] == where[1]:
        where = f"one of two groups of {where[0].removeprefix('the group of ')}", "the other group"
    return world.diagnosis(
        "mismatched_collectives",
        f"Two groups are used in different orders: rank {one.rank} is in {one.call}{at(one)} of {where[0]}, "
        f"while rank {other.rank} is in {other.call}{at(other)} of {where[1]}, and both ranks are in both "
        "groups."
        if one.where == other.where or _is_usual_order(one, other, world.trace)
        else f"Two ranks wait for each other in calls of two groups: rank {one.rank} is in "
        f"{one.call}{at(one)} of {where[0]}, while rank {other.rank} is in {other.call}{at(other)} of "
        f"{where[1]}, and both ranks are in both groups.",
        "Ranks that share several groups must use them in the same order, and none may leave out a call.",
        (one.rank, other.rank),
    )


def _is_usual_order(first: Event, second: Event, trace: Trace) -> bool:
    """Return whether some rank has made a call on the line of `first`, then on the line of `second`."""
    # The groups may differ between ranks, as in a mesh, so compare lines.
    if first.where is None or second.where is None or first.where == second.where:
        return False
    for rank in trace.ranks:
        lines = [call.where for call in trace.of(rank) if call.where in {first.where, second.where}]
        if any(pair == (first.where, second.where) for pair in pairwise(lines)):
            return True
    return False


@cause("skipped backward", Priority.WRONG_LINE)
def find_skipped_backward(world: StuckWorld) -> Diagnosis | None:
    """Find a backward pass that communicates on only some ranks of a group."""
    inside = [
        state
        for state in world.states
        if not state.ended and state.inside in {"backward", "grad"} and state.pending
    ]
    if not inside:
        return None
    call = inside[0].blocked or inside[0].pending[-1]
    members = call.group_ranks or range(world.trace.world_size)
    inside = [state for state in inside if state.rank in members]
    # an imagined run contains only some of the ranks
    others = [state for state in world.states if state.rank in members and state not in inside]
    if not others:
        return None
    ranks = name_ranks([state.rank for state in inside])
    missing = name_ranks([state.rank for state in others])
    if is_gradient_call(call):
        action = "is reducing gradients" if len(inside) == 1 else "are reducing gradients"
        others_text = f"{missing} {has_or_have(others)} not reduced them in this step."
        advice = _REDUCE_ADVICE
    else:
        action = f"{'calls' if len(inside) == 1 else 'call'} {call.call}{at(call)}"
        others_text = f"{missing} {does_or_do(others)} not make this call."
        advice = _BACKWARD_ADVICE
    return world.diagnosis(
        "skipped_backward",
        f"{ranks.capitalize()} {is_or_are(inside)} in backward() and {action}; {others_text}",
        advice,
        tuple(state.rank for state in others),
    )


_REDUCE_ADVICE = (
    "With DDP, every rank must reduce the gradients in every step. A rank fails to do so if it skips "
    "backward(), if it has fewer batches (give all ranks the same number, or use the join() context "
    "manager), or if its loss depends on no parameter of the model."
)
_BACKWARD_ADVICE = (
    "The backward pass of this program communicates, so all ranks of the group must call backward() "
    "the same number of times, on results of the same layers."
)
