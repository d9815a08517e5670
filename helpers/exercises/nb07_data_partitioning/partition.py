"""7.1 A partition by seed (8 min, ●○○○○)

- No rank may tell another which samples it took. How can all of them know the same shuffled order without a
  message?
- A generator with the same seed gives every rank the same permutation: `torch.randperm(length,
  generator=torch.Generator().manual_seed(seed))`. Then each rank takes its part.
- order = torch.randperm(...).tolist(); return order[rank::world_size]. A slice with a step is balanced by
  itself.
"""

from itertools import pairwise
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.in_ranks import with_several_seeds
from helpers.exercises.nb07_data_partitioning.shared import not_dealt, numbers

ONE_ORDER = (
    "The ranks, or the calls, do not draw the same order. Shuffle with a generator seeded with `seed` "
    "and nothing else, then take your part."
)
REMAINDER = "The remainder of the division is lost. Some ranks take one more sample."
REPEATED = (
    "Samples were repeated so that all ranks have the same number. Here nothing is repeated: the numbers may "
    "differ by one."
)
SHUFFLE_FIRST = "Shuffle all samples first, then deal them out."
LARGE = 16
"""Two shuffled orders of this many samples are never equal by chance."""


def case(draw: Draw) -> Case:
    n, seed = draw.ranks, draw.of(0, 1, 1) * draw.whole(1, 1 << 30)
    length = draw.whole(LARGE, 4 * LARGE) if draw.of(True, False) else draw.length(least=1)
    return Case(
        f"{plural(length, 'sample')}, seed {seed}",
        [(length, [seed, seed, seed + 1, seed + 2, seed + 3])] * n,
        right=AllRanks(own, lambda values: together(values, length)),
    )


def own(tries: Any) -> Finding | None:
    """Describe what is wrong with what one rank returned for five seeds, two of them equal."""
    lists = [numbers(one) for one in tries] if isinstance(tries, list) else [None]
    if len(lists) != 5 or any(one is None for one in lists):
        return Finding(
            "what it returns is not a list of ints", "`.tolist()` turns a tensor into one."
        )
    if lists[0] != lists[1]:
        return Finding("called again with the same seed, it returns something else", ONE_ORDER)
    return None


def together(values: list[Any], length: int) -> Finding | None:
    """Describe what is wrong with what all ranks returned."""
    n = len(values)
    tries = [[numbers(mine[k]) or [] for mine in values] for k in range(1, 5)]
    for shares in tries:
        problem = not_dealt({f"rank {r}": share for r, share in enumerate(shares)}, range(length))
        sizes = {len(share) for share in shares}
        if problem.startswith("no share") and sizes == {length // n}:
            return Finding(problem, REMAINDER)
        if "already" in problem and sizes == {-(-length // n)} and length % n:
            return Finding(problem, REPEATED)
        if "already" in problem and all(len(set(share)) == len(share) for share in shares):
            return Finding(problem, ONE_ORDER)
        if problem:
            outside = "Samples are numbered from 0 to `length - 1`."
            return Finding(problem, outside if "not one of" in problem else "")
    return unshuffled(tries, length) if length >= LARGE else None


def unshuffled(tries: list[list[list[int]]], length: int) -> Finding | None:
    """Describe what the orders of four seeds have in common that random orders would not."""
    if all(one == tries[0] for one in tries):
        what = "every seed gives the same samples in the same order"
        return Finding(
            what, "The order does not depend on `seed`: pass it to the generator that shuffles."
        )
    shares = [share for one in tries for share in one if len(share) > 2]
    steps = [{(b - a) % length for a, b in pairwise(share)} for share in shares]
    if steps and all(len(each) == 1 for each in steps):
        what = "the samples are moved along by the seed, not shuffled"
        return Finding(what, "Shuffle with `torch.randperm`.")
    dealt = [{frozenset(share) for share in one} for one in tries]
    if len(tries[0]) > 1 and all(one == dealt[0] for one in dealt):
        return Finding("every seed deals the samples into the same shares", SHUFFLE_FIRST)
    if shares and all(share == sorted(share) for share in shares):
        return Finding("each rank's samples come in ascending order, whatever the seed is")
    return None


EXERCISE = Exercise(case, (OnlyCalls(()),), kind=Kind.MODULE, driver=with_several_seeds)
