"""Find calls waiting for a rank that has ended, or that does not make the matching call."""

from __future__ import annotations

from collections.abc import Sequence

from helpers.trace.cause import Priority, cause
from helpers.trace.causes_setup import NEW_GROUP_ADVICE
from helpers.trace.departure import LEAVE_TOGETHER_ADVICE
from helpers.trace.events import Diagnosis, Event, Trace
from helpers.trace.mismatch import at
from helpers.trace.rank_state import RankState
from helpers.trace.waits import StuckWorld
from helpers.trace.wording import does_or_do, has_or_have, is_or_are, it_or_them, name_ranks


@cause("exited rank", Priority.ENDED_RANK)
def find_exited_rank(world: StuckWorld) -> Diagnosis | None:
    """Find a rank that has ended while a recorded call of another rank still needs it."""
    exited = {state.rank for state in world.states if state.ended}
    # An ended rank makes no further calls, so waiting for it never ends.
    for wait in world.call_waits:
        exited_peers = [rank for rank in wait.waits_for if rank in exited]
        if exited_peers:
            return world.diagnosis(
                "rank_left",
                f"{name_ranks(exited_peers).capitalize()} {has_or_have(exited_peers)} returned, but "
                f"rank {wait.rank} still waits for {it_or_them(exited_peers)} in "
                f"{wait.call}{at(wait.event)}.",
                _exited_rank_advice(wait.event, exited_peers, world.trace),
                tuple(exited_peers),
            )
    return None


def _exited_rank_advice(event: Event, exited_peers: list[int], trace: Trace) -> str:
    if event.is_collective:
        advice = f"All ranks of the group must call {event.call}, or none."
        # If the rank has made this call in earlier steps, it has left a loop.
        has_left_loop = any(
            event.where is not None and call.where == event.where
            for rank in exited_peers
            for call in trace.of(rank)
        )
        return f"{advice} {LEAVE_TOGETHER_ADVICE}" if has_left_loop else advice
    counterpart = "recv" if event.op == "send" else "send"
    return (
        f"Either {name_ranks(exited_peers)} must make the {counterpart} that answers this call before "
        f"returning, or rank {event.rank} must not make this call."
    )


@cause("unmatched call", Priority.MISSING_CALL)
def find_unmatched_call(world: StuckWorld) -> Diagnosis | None:
    """Find a call whose counterpart is missing on some rank."""
    for wait in world.call_waits:
        if wait.waits_for:
            return world.diagnosis(
                "unmatched",
                f"Rank {wait.rank} waits in {wait.call}{at(wait.event)} for "
                f"{name_ranks(wait.waits_for)}, which {does_or_do(wait.waits_for)} "
                "not make the matching call.",
                _unmatched_advice(
                    wait.event, [state for state in world.states if state.rank in wait.waits_for]
                ),
                (wait.rank, *wait.waits_for),
            )
    return None


def _unmatched_advice(call: Event, other_states: Sequence[RankState]) -> str:
    if any(other.makes_group for other in other_states):
        ranks = [other.rank for other in other_states if other.makes_group]
        return (
            f"{name_ranks(ranks).capitalize()} {is_or_are(ranks)} in new_group. {NEW_GROUP_ADVICE}"
        )
    if call.is_collective:
        return f"All ranks of the group must call {call.call}, or none."
    return "Compare peer, tag and group of both calls: they must match."
