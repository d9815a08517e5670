"""7.1 A partition by seed (8 min, ●○○○○)

- No rank can tell another which samples it took, because the ranks don't communicate. How can all of them
  know the same shuffled order without a message?
- A generator with the same seed gives every rank the same permutation: `torch.randperm(length,
  generator=torch.Generator().manual_seed(seed))`. Then each rank takes its part.
- order = torch.randperm(...).tolist(); return order[rank::world_size]. A slice with a step is already
  balanced.
"""

from itertools import pairwise
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb07_data_partitioning.in_ranks import run_with_seeds
from helpers.exercises.nb07_data_partitioning.shared import as_int_list, find_uneven_shares

ONE_ORDER_ADVICE = (
    "The order differs between ranks or between calls. Shuffle with a generator seeded with `seed` and "
    "nothing else, then take your rank's part."
)
REMAINDER_ADVICE = "The remainder of the division is lost. Let some ranks take one more sample."
REPEATED_ADVICE = (
    "You repeated samples to give all ranks the same number. Don't repeat any here, because the numbers "
    "may differ by one."
)
SHUFFLE_ADVICE = "Shuffle all samples first, then deal them out."
MIN_SHUFFLED = 16
"""The number of samples at which two shuffled orders are no longer equal by chance."""


def case(draw: Draw) -> Case:
    n, seed = draw.ranks, draw.of(0, 1, 1) * draw.whole(1, 1 << 30)
    length = (
        draw.whole(MIN_SHUFFLED, 4 * MIN_SHUFFLED) if draw.of(True, False) else draw.length(least=1)
    )
    return Case(
        f"{plural(length, 'sample')}, seed {seed}",
        [(length, [seed, seed, seed + 1, seed + 2, seed + 3])] * n,
        right=AllRanks(judge_rank, lambda values: judge_all_ranks(values, length)),
    )


def judge_rank(tries: Any) -> Finding | None:
    """Describe the problem with one rank's results for five seeds, two of them equal."""
    lists = [as_int_list(one) for one in tries] if isinstance(tries, list) else [None]
    if len(lists) != 5 or any(one is None for one in lists):
        return Finding(
            "the result isn't a list of ints", "`.tolist()` turns a tensor into a list of ints."
        )
    if lists[0] != lists[1]:
        return Finding(
            "a second call with the same seed returns a different result", ONE_ORDER_ADVICE
        )
    return None


def judge_all_ranks(values: list[Any], length: int) -> Finding | None:
    """Describe the problem with all ranks' results."""
    n = len(values)
    tries = [[as_int_list(mine[k]) or [] for mine in values] for k in range(1, 5)]
    for shares in tries:
        problem = find_uneven_shares(
            {f"rank {r}": share for r, share in enumerate(shares)}, range(length)
        )
        sizes = {len(share) for share in shares}
        if problem.startswith("no share") and sizes == {length // n}:
            return Finding(problem, REMAINDER_ADVICE)
        if "already" in problem and sizes == {-(-length // n)} and length % n:
            return Finding(problem, REPEATED_ADVICE)
        if "already" in problem and all(len(set(share)) == len(share) for share in shares):
            return Finding(problem, ONE_ORDER_ADVICE)
        if problem:
            outside = "Samples are numbered from 0 to `length - 1`."
            return Finding(problem, outside if "not one of" in problem else "")
    return find_missing_shuffle(tries, length) if length >= MIN_SHUFFLED else None


def find_missing_shuffle(tries: list[list[list[int]]], length: int) -> Finding | None:
    """Describe a regularity in the orders of four seeds that random orders would not have."""
    if all(one == tries[0] for one in tries):
        what = "every seed gives the same samples in the same order"
        return Finding(
            what,
            "The order does not depend on `seed`. Seed the generator used to shuffle with `seed`.",
        )
    shares = [share for one in tries for share in one if len(share) > 2]
    steps = [{(b - a) % length for a, b in pairwise(share)} for share in shares]
    if steps and all(len(each) == 1 for each in steps):
        what = "the seed only shifts the samples instead of shuffling them"
        return Finding(what, "Shuffle with `torch.randperm`.")
    dealt = [{frozenset(share) for share in one} for one in tries]
    if len(tries[0]) > 1 and all(one == dealt[0] for one in dealt):
        return Finding("every seed divides the samples into the same shares", SHUFFLE_ADVICE)
    if shares and all(share == sorted(share) for share in shares):
        return Finding("each rank's samples are in ascending order for every seed")
    return None


EXERCISE = Exercise(case, (OnlyCalls(()),), kind=Kind.MODULE, driver=run_with_seeds)
