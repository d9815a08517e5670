"""0.2 My slice (10 min, ●●○○○)

- Every rank gets `n // world_size` elements. How many elements are then left over, and which ranks take them?
- Let each of the first `n % world_size` ranks take one extra element. A rank starts after all elements of the
  ranks before it.
- `share, extra = divmod(n, world_size)`. Before rank r there are r slices. Together they hold r shares, plus
  `min(r, extra)` elements, because each of the first `extra` ranks took one more. `stop` is `start` plus the
  length of the slice.
"""

from operator import index
from typing import Any

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    # In floats, 61 / 7 * 7 is less than 61. Of 1 to 8 ranks, only 7 ranks have such an n.
    n = draw.of(61, draw.length(), 10_000) if draw.ranks == 7 else draw.length()
    return Case(
        f"n = {n}",
        [(n,)] * draw.ranks,
        right=AllRanks(lambda got: judge_rank(got, n), lambda values: judge_all_ranks(values, n)),
    )


def judge_rank(got: Any, n: int) -> str:
    """Describe the problem with one rank's slice, regardless of other ranks' slices."""
    if got is None:
        return "nothing was returned"
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return "the result isn't a pair (start, stop)"
    try:
        start, stop = index(got[0]), index(got[1])
    except (TypeError, ValueError):
        return "start and stop must be integers"
    if start > stop:
        return f"start {start} is after stop {stop}; an empty slice has start == stop"
    return "" if start >= 0 and stop <= n else f"the slice isn't within 0 to {n}"


def judge_all_ranks(values: list[Any], n: int) -> Finding | None:
    """Describe the problem with all slices: a gap, an overlap, or lengths that differ by more than 1."""
    slices = [(index(start), index(stop)) for start, stop in values]
    problem, reached, owner = "", 0, 0
    for rank in sorted(range(len(slices)), key=lambda rank: slices[rank]):
        start, stop = slices[rank]
        if start < stop and not problem:
            if start > reached:
                problem = f"no slice contains element {reached}"
            elif start < reached:
                both = sorted((owner, rank))
                problem = f"element {start} is in the slices of ranks {both[0]} and {both[1]}"
            reached, owner = stop, rank
    if not problem and reached < n:
        problem = f"no slice contains element {reached}"
    lengths = [stop - start for start, stop in slices]
    if not problem and max(lengths) - min(lengths) > 1:
        problem = f"the lengths are {', '.join(map(str, lengths))}: they may differ by at most 1"
    listed = ", ".join(f"rank {rank} {pair}" for rank, pair in enumerate(slices))
    return Finding(f"{problem}. The slices: {listed}") if problem else None


EXERCISE = Exercise(case, (OnlyCalls(()),), sizes=(1, 2, 3, 4, 7))
