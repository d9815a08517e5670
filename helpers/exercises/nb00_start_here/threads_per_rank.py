"""0.4 Threads per rank (3 min, ●○○○○)

- All ranks together should have about as many threads as there are cores.
- Divide and round down. What is the result when there are more ranks than cores?
- `cores // ranks` rounds down, to 0 where there are more ranks than cores. A rank needs at least one thread:
  `max` gives the larger of two numbers.
"""

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    # In one case of six 1 is right: an answer that always gives 1 must not be worth much.
    kind = draw.of("even", "even", "uneven", "uneven", "uneven", "one each")
    if kind == "one each":
        kind = draw.of("too many ranks", "as many")
    ranks, each = draw.whole(2, 24), draw.of(*range(2, 17))
    cores = {
        "even": ranks * each,
        "uneven": ranks * each + draw.whole(1, ranks - 1),
        "too many ranks": draw.whole(1, ranks - 1),
        "as many": ranks,
    }[kind]
    if draw.of(True, *[False] * 7):
        ranks = 1
    label = f"{plural(cores, 'core')}, {plural(ranks, 'rank')}"
    return Case(label, [(cores, ranks)], right=max(1, cores // ranks))


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,), points=5)
