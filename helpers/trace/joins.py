"""Compare the calls of init_process_group, which together must contain each rank of the world once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from helpers.trace.wording import name_ranks

MAX_PLACE = 200


@dataclass(frozen=True)
class JoinCall:
    """A call of init_process_group, with the rank's number and the world's size passed by the caller.

    Attributes:
        rank, world_size: The numbers; -1 if unknown.
        place: The address, or the path of a file, where the ranks meet; "" if unknown.
    """

    rank: int
    world_size: int
    place: Annotated[str, Meta(max_length=MAX_PLACE)] = ""


@dataclass(frozen=True)
class JoinProblem:
    """The reason why ranks cannot join. guilty: the ranks to look at first."""

    summary: str
    advice: str
    guilty: tuple[int, ...]


_OWN_NUMBER_ADVICE = (
    "Each rank must join with its own number: pass rank=rank and world_size=world_size to "
    "init_process_group, or leave out both, so that it reads RANK and WORLD_SIZE."
)
SAME_SIZE_ADVICE = (
    "world_size must be the number of ranks that call init_process_group, on each of them."
)
_TWO_JOBS_ADVICE = (
    "If these ranks belong to different jobs, each job needs a port or a file that no other job uses. If "
    "they belong to one job, they must pass the same world_size and different ranks."
)
_SAME_PLACE_ADVICE = (
    "Pass the same init_method or store on every rank. A free port must be chosen once, before the ranks "
    "start: each launch reserves one in os.environ['MASTER_PORT']."
)

APART_ADVICE = (
    "A store or a file must be the same one on all ranks, and new for each job. Do not delete a file that "
    "another rank may have opened: ranks that join later would create a new file under the same "
    "name."
)


def find_join_problem(joins: Mapping[int, JoinCall], rank_count: int) -> JoinProblem | None:
    """Return the problem of these ranks' calls; None if there is none. rank_count: all running ranks."""
    places: dict[str, dict[int, JoinCall]] = defaultdict(dict)
    for rank, call in sorted(joins.items()):
        places[call.place][rank] = call
    for calls in places.values():
        problem = (
            _find_double_number(calls)
            or _find_wrong_number(calls)
            or _find_wrong_size(calls, rank_count)
        )
        if problem is not None:
            return problem
    return _find_different_places(places)


def _find_double_number(calls: Mapping[int, JoinCall]) -> JoinProblem | None:
    by_number: dict[int, list[int]] = defaultdict(list)
    for rank, call in calls.items():
        by_number[call.rank].append(rank)
    for number, ranks in by_number.items():
        sizes = sorted({calls[rank].world_size for rank in ranks} - {-1})
        if len(sizes) > 1:
            return JoinProblem(
                f"{name_ranks(ranks).capitalize()} call init_process_group as rank {number} at the same "
                f"address, but with different sizes of the world ({' and '.join(map(str, sizes))}).",
                _TWO_JOBS_ADVICE,
                tuple(ranks),
            )
        if number >= 0 and len(ranks) > 1:
            both = "both" if len(ranks) == 2 else "all"
            return JoinProblem(
                f"{name_ranks(ranks).capitalize()} {both} call init_process_group as rank {number}.",
                _OWN_NUMBER_ADVICE,
                tuple(rank for rank in ranks if rank != number),
            )
    return None


def _find_wrong_number(calls: Mapping[int, JoinCall]) -> JoinProblem | None:
    for rank, call in calls.items():
        if call.rank >= call.world_size >= 1:
            last = call.world_size - 1
            return JoinProblem(
                f"Rank {rank} calls init_process_group as rank {call.rank} of {call.world_size}, but ranks "
                f"count from 0 to {last}.",
                _OWN_NUMBER_ADVICE,
                (rank,),
            )
    return None


def _find_wrong_size(calls: Mapping[int, JoinCall], rank_count: int) -> JoinProblem | None:
    for rank, call in calls.items():
        if call.world_size > rank_count:
            return JoinProblem(
                f"Rank {rank} passes world_size={call.world_size} to init_process_group, but only "
                f"{rank_count} rank{'s' * (rank_count != 1)} run{'s' * (rank_count == 1)}.",
                SAME_SIZE_ADVICE,
                (rank,),
            )
    first_rank, first = next(iter(calls.items()))
    for rank, call in calls.items():
        if call.world_size != first.world_size and -1 not in {call.world_size, first.world_size}:
            return JoinProblem(
                f"The ranks pass different sizes of the world to init_process_group: rank {first_rank} "
                f"passes world_size={first.world_size}, rank {rank} world_size={call.world_size}.",
                SAME_SIZE_ADVICE,
                (first_rank, rank),
            )
    return None


def _find_different_places(places: Mapping[str, Mapping[int, JoinCall]]) -> JoinProblem | None:
    """Find ranks that wait for each other at different places, each with too few ranks."""
    lonely = [
        (place, next(iter(calls)))
        for place, calls in places.items()
        if place and len(calls) < max(call.world_size for call in calls.values())
    ]
    if len(lonely) < 2:
        return None
    (place, rank), (other_place, other_rank) = lonely[:2]
    return JoinProblem(
        f"The ranks call init_process_group with different addresses: rank {rank} waits at {place}, "
        f"rank {other_rank} at {other_place}.",
        _SAME_PLACE_ADVICE,
        (rank, other_rank),
    )
