"""0.1 Hello, rank (2 min, ●○○○○)

- The function is given both numbers. It has to put them into a text and return it.
- An f-string fills in what stands in braces: `f"{rank} is my number"`.
- The text begins `f"Hello from rank {rank} of `, and the second number follows in the same way. Hand it out
  with `return`: what is only printed is not returned.
"""

import re

from helpers.checks.author import *


def greeting(rank: int, world_size: int) -> str:
    return f"Hello from rank {rank} of {world_size}"


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", text.lower())


def case(draw: Draw) -> Case:
    n = draw.ranks
    ranks = range(n)

    def gives(shift: int, size: int, words: str) -> Mistake:
        return Mistake(Each([greeting(rank + shift, size) for rank in ranks]), words)

    return Case(
        "each greets",
        [()] * n,
        right=Each([greeting(rank, n) for rank in ranks]),
        shown="",
    )


EXERCISE = Exercise(case, (OnlyCalls(()),), count=12, points=5)
