"""0.1 Count the votes (5 min, ●○○○○)

- Which ranks must call `all_reduce`? Think of the deadlock that you have just seen.
- A rank with invalid votes has to call it, too. Which number should it contribute so that the sum stays
  correct?
- counted = torch.tensor([votes if is_valid else 0]); dist.all_reduce(counted); return counted.item().
"""

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    n = draw.ranks
    votes = draw.rng.sample(range(2, 60), n)
    valid = [draw.whole(0, 2) > 0 for _ in range(n)]
    if n > 2 and draw.whole(0, 3) == 0:
        valid = [False] * n
    elif n > 1:
        yes = draw.rank()
        valid[yes], valid[(yes + 1) % n] = True, False
    # counts too large for float32, int32 or float64
    many = draw.of(0, 0, 0, (1 << 24) + 1, (1 << 31) + 1, (1 << 53) + 1)
    if not draw.low and not draw.small:
        votes = [number + many for number in votes]
    return Case(
        f"{sum(valid)} of {n} valid",
        [(votes[rank], valid[rank]) for rank in range(n)],
        right=sum(number for number, counts in zip(votes, valid, strict=True) if counts),
        facts={"bytes": 8},
    )


EXERCISE = Exercise(
    case,
    (WaitsForAll(), OnlyCalls(("all_reduce",)), Calls("all_reduce", 1)),
    points=5,
)
