"""0.2 My slice (10 min, ●●○○○)

- Every rank gets `n // world_size` elements. How many are then left over, and who takes them?
- Let each of the first `n % world_size` ranks take one element more. A rank starts after all elements of the
  ranks before it.
- `share, extra = divmod(n, world_size)`. Before rank r stand r shares, and one element more for each rank
  before it that took one: `min(r, extra)` of them. Where a slice ends follows from its length.
"""

from operator import index
from typing import Any

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    ranks, n = draw.ranks, draw.length() + draw.of(*[0] * 7, 10_000)
    share, extra = divmod(n, ranks)
    most = -(-n // ranks)
    spread = [(r * n // ranks, (r + 1) * n // ranks) for r in range(ranks)]
    first = [(r * share + min(r, extra), (r + 1) * share + min(r + 1, extra)) for r in range(ranks)]
    usual = [
        ([(r * share, (r + 1) * share) for r in range(ranks)], LEFT),
        ([(r * share, (r + 1) * share if r < ranks - 1 else n) for r in range(ranks)], SPREAD),
        ([(min(r * most, n), min((r + 1) * most, n)) for r in range(ranks)], UP),
        ([(r * most, min((r + 1) * most, n)) for r in range(ranks)], UP),
        ([(r * most, (r + 1) * most) for r in range(ranks)], UP),
        ([(r * share, (r + 1) * share + (r < extra)) for r in range(ranks)], START),
        ([(0, n)] * ranks, "Every rank takes everything: which part is this rank's own?"),
        *(([(a, b - 1) for a, b in way], PAST) for way in (spread, first)),
        *(([(a, b - a) for a, b in way], LENGTH) for way in (spread, first)),
    ]
    return Case(
        f"n = {n}",
        [(n,)] * ranks,
        right=AllRanks(lambda got: alone(got, n), lambda values: together(values, n, usual)),
    )


LEFT = "`n // world_size` leaves some elements over: as many ranks must take one more."
SPREAD = "`n // world_size` leaves some elements over: spread them, one each, over as many ranks."
UP = "A share that is rounded up leaves little for the last ranks: round down, and spread what is left over."
START = "A rank starts after all elements of the ranks before it, also those that they take in addition."
PAST = "`stop` itself is not included, as in `x[start:stop]`: it is one past the last element."
LENGTH = "This is start and length. Wanted are start and stop."


def alone(got: Any, n: int) -> str:
    """Say what is wrong with one rank's slice by itself."""
    if got is None:
        return "nothing was returned"
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return "this is not a pair (start, stop)"
    try:
        start, stop = index(got[0]), index(got[1])
    except (TypeError, ValueError):
        return "start and stop must be whole numbers: `//` divides without a fraction"
    if start > stop:
        return f"start {start} is after stop {stop}; an empty slice has start == stop"
    return "" if start >= 0 and stop <= n else f"the slice leaves 0 to {n}"


def together(
    values: list[Any], n: int, usual: list[tuple[list[tuple[int, int]], str]]
) -> Finding | None:
    """Say what is wrong with all slices: a gap, an overlap, lengths more than one apart."""
    slices = [(index(start), index(stop)) for start, stop in values]
    problem, reached, owner = "", 0, 0
    for rank in sorted(range(len(slices)), key=lambda rank: slices[rank]):
        start, stop = slices[rank]
        if start < stop and not problem:
            if start > reached:
                problem = f"element {reached} is in no slice"
            elif start < reached:
                both = sorted((owner, rank))
                problem = f"element {start} is in the slices of ranks {both[0]} and {both[1]}"
            reached, owner = stop, rank
    if not problem and reached < n:
        problem = f"element {reached} is in no slice"
    lengths = [stop - start for start, stop in slices]
    if not problem and max(lengths) - min(lengths) > 1:
        problem = f"the lengths are {', '.join(map(str, lengths))}: they may differ by 1 at most"
    if not problem:
        return None
    listed = ", ".join(f"rank {rank} {pair}" for rank, pair in enumerate(slices))
    return Finding(
        f"{problem}. The slices: {listed}",
        tuple(words for pairs, words in usual if pairs == slices),
    )


EXERCISE = Exercise(case, (OnlyCalls(()),))
