"""0.1 Hello, rank (2 min, ●○○○○)

- The function is given both numbers. Put them into a text and return it.
- An f-string fills in the names in braces: `f"{rank} is my number"`.
- The text begins `f"Hello from rank {rank} of `, and the second number follows in the same way. `return` the
  text: printing it is not enough.
"""

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    n = draw.ranks
    greetings = [f"Hello from rank {rank} of {n}" for rank in range(n)]
    return Case("each greets", [()] * n, right=Each(greetings), shown="")


EXERCISE = Exercise(case, (OnlyCalls(()),), count=12, points=5)
