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
        mistakes=[
            Mistake(lambda got, rank: got is not None and not isinstance(got, str), ONE_STRING),
            Mistake(lambda got, rank: "{" in got, BRACES),
            Mistake("Hello from rank 1 of 4", SAME),
            Mistake(greeting(0, n), SAME),
            Mistake(lambda got, rank: words(got) == words(greeting(rank, n)), SPELLING),
            gives(1, n, "Ranks count from 0: use `rank` as it is."),
            gives(0, n - 1, LAST),
            *(
                gives(
                    0,
                    size,
                    f"There are not {size} ranks in every world: let `world_size` say how many.",
                )
                for size in range(9)
            ),
        ],
        shown="",
    )


ONE_STRING = "Return one string, not its parts: an f-string puts them together."
BRACES = 'Braces are filled in only where an f stands before the quotes: f"... {rank} ...".'
SAME = "Every rank says the same. Which of the two parameters tells them apart?"
SPELLING = "The words are right. Compare capital letters, spaces and full stops."
LAST = "`world_size` is how many ranks there are, not the number of the last one."
EXERCISE = Exercise(case, (OnlyCalls(()),), count=12, points=5)
