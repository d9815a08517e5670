"""Explain why no rank can continue: the ranks' waits, and the calls that do not match.

    states, trace -> waits.py -> StuckWorld -> causes.py (a table of causes) -> Diagnosis

The detector in `helpers/ranks/deadlock_watch.py` decides from outside *whether* a world is deadlocked. The
modules of the diagnosis are pure: they take states and a trace, and return a `Diagnosis`.
"""

from __future__ import annotations

from collections.abc import Sequence

from helpers.trace.causes import explanations
from helpers.trace.events import Diagnosis, Trace
from helpers.trace.rank_state import RankState
from helpers.trace.waits import can_complete, is_hopeless, stuck_world, with_pending_call


def diagnose(states: Sequence[RankState], trace: Trace) -> Diagnosis:
    """Explain a world in which no rank can continue. states: the state of each rank, in order."""
    _, diagnosis = next(explanations(stuck_world(states, trace)))
    return diagnosis


def diagnose_timeout(states: Sequence[RankState], trace: Trace) -> Diagnosis | None:
    """Explain a timeout if more time would not have helped. Otherwise return None."""
    states = [with_pending_call(state, states, trace) for state in states]
    world = stuck_world(states, trace)
    for state in states:
        if state.child and not state.ended:
            summary = (
                f"Rank {state.rank} waits for a process that it has forked: its {state.child}."
            )
            return world.diagnosis("stuck", summary, _CHILD_ADVICE, (state.rank,))
    if can_complete(states, trace):
        return None
    for _, diagnosis in explanations(world, only_certain=True):
        return diagnosis
    return diagnose(states, trace) if is_hopeless(world) else None


_CHILD_ADVICE = (
    "Call functions of torch.distributed only in the rank itself: let the dataset read files and return "
    "values, and communicate after the DataLoader has returned the batch."
)
