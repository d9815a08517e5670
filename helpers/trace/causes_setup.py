"""Find ranks that do not meet in init_process_group or new_group."""

from __future__ import annotations

from collections.abc import Sequence

from helpers.trace.cause import Priority, cause
from helpers.trace.events import Diagnosis
from helpers.trace.joins import APART_ADVICE, SAME_SIZE_ADVICE, find_join_problem
from helpers.trace.rank_state import GROUP_MAKERS, RankState
from helpers.trace.waits import StuckWorld
from helpers.trace.wording import has_or_have, it_or_them, name_ranks

NEW_GROUP_ADVICE = (
    "All ranks of the world must call new_group the same number of times and in the same order, including "
    "for groups that they are not members of. In each call, all ranks must pass the same list of ranks."
)


@cause("wrong join", Priority.WRONG_LINE, certain=True)
def find_wrong_join(world: StuckWorld) -> Diagnosis | None:
    """Find ranks that call init_process_group with inconsistent numbers."""
    joins = {state.rank: state.joins for state in world.states if state.joins is not None}
    problem = find_join_problem(joins, len(world.states)) if joins else None
    if problem is None:
        return None
    return world.diagnosis("stuck", problem.summary, problem.advice, problem.guilty)


@cause("local group", Priority.WRONG_LINE)
def find_local_group(world: StuckWorld) -> Diagnosis | None:
    """Find a group whose members have all called new_group with use_local_synchronization."""
    ranks = _ranks_in_local_synchronization(world.states)
    if not ranks:
        return None
    return world.diagnosis(
        "stuck",
        f"{name_ranks(ranks).capitalize()} wait for each other in "
        "new_group(..., use_local_synchronization=True), although all members of the group have "
        "called it.",
        "torch names such a group after its members and the number of groups that the rank "
        "already has, so every member must have created the same number of groups before. Look "
        "for a new_group that only some of them call.",
        ranks,
    )


def _ranks_in_local_synchronization(states: Sequence[RankState]) -> tuple[int, ...]:
    """Return the ranks that create groups with use_local_synchronization, if they include all members."""
    making_groups = [state for state in states if state.makes_group and state.needs]
    ranks = tuple(state.rank for state in making_groups)
    are_complete = all(set(ranks).issuperset(state.needs) for state in making_groups)
    return ranks if are_complete else ()


@cause("different groups", Priority.WRONG_LINE)
def find_different_groups(world: StuckWorld) -> Diagnosis | None:
    """Find ranks that have all called new_group, but for different groups."""
    making_groups = [state for state in world.states if state.makes_group]
    first = next((state for state in making_groups if state.named and not state.needs), None)
    for state in making_groups:
        if first is not None and state.named != first.named and not state.needs and state.named:
            return world.diagnosis(
                "stuck",
                f"The ranks create different groups: rank {first.rank} is in {_name_maker(first)} for "
                f"{name_ranks(first.named)} (at {first.at}), while rank {state.rank} is in "
                f"{_name_maker(state)} for {name_ranks(state.named)} (at {state.at}).",
                NEW_GROUP_ADVICE,
                (first.rank, state.rank),
            )
    return None


def _name_maker(state: RankState) -> str:
    if state.inside in GROUP_MAKERS or not state.inside:
        return "new_group"
    return f"{state.inside}, which calls new_group"


@cause("exit before setup", Priority.ENDED_RANK)
def find_exit_before_setup(world: StuckWorld) -> Diagnosis | None:
    """Find a rank that has ended while the other ranks wait in a rendezvous, which is not a recorded call."""
    exited = {state.rank for state in world.states if state.ended}
    if not exited or world.call_waits or _ranks_in_local_synchronization(world.states):
        return None
    others = [state for state in world.states if not state.ended]
    where = next((state.inside for state in others if state.inside), "torch")
    return world.diagnosis(
        "rank_left",
        f"{name_ranks(sorted(exited)).capitalize()} {has_or_have(exited)} returned, and "
        f"{name_ranks([state.rank for state in others])} still wait{'s' * (len(others) == 1)} in "
        f"{where} for {it_or_them(exited)}.",
        NEW_GROUP_ADVICE if where in GROUP_MAKERS else "All ranks must make this call.",
        tuple(sorted(exited)),
    )


@cause("separate stores", Priority.UNRECORDED)
def find_separate_stores(world: StuckWorld) -> Diagnosis | None:
    """Find ranks that all wait in init_process_group for the whole world, but do not meet."""
    if not _do_all_join(world.states):
        return None
    return world.diagnosis(
        "stuck",
        "All ranks wait in init_process_group for the whole world, but cannot find each other, "
        "because they use different stores or files, or a file of an earlier job.",
        APART_ADVICE,
    )


def _do_all_join(states: Sequence[RankState]) -> bool:
    """Return whether every rank is in a call of init_process_group for exactly these ranks."""
    joins = [state.joins for state in states]
    return all(join is not None and join.world_size == len(states) for join in joins)


@cause("endless setup", Priority.UNRECORDED)
def find_endless_setup(world: StuckWorld) -> Diagnosis | None:
    """Find ranks in init_process_group or new_group, if there is no better explanation."""
    setup_calls = {state.inside for state in world.states} & {"init_process_group", "new_group"}
    if not setup_calls or _do_all_join(world.states):
        return None
    calls = " and ".join(sorted(setup_calls))
    return world.diagnosis(
        "stuck",
        f"Every rank waits in {calls} for ranks that never make this call.",
        SAME_SIZE_ADVICE if "init_process_group" in setup_calls else NEW_GROUP_ADVICE,
    )
