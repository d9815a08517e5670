"""16.4 Zigzag (8 min, ●●○○○)

- A token late in the sequence sees many tokens, an early token sees few. Which chunk should a rank have in
  addition to the last one?
- Cut the sequence into 2 * world_size chunks. Rank 0 takes the first and the last, rank 1 the second and
  the second to last.
- chunks = torch.arange(length).chunk(2 * world_size); return torch.cat([chunks[rank], chunks[2 * world_size -
  1 - rank]]).
"""

import torch

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    n = draw.whole(1, 9)
    rank = draw.of(0, n - 1, draw.whole(0, n - 1))
    chunk = draw.of(1, 2, draw.whole(3, 40))
    length = 2 * n * chunk
    chunks = torch.arange(length).split(chunk)
    right = torch.cat([chunks[rank], chunks[2 * n - 1 - rank]])
    return Case(
        f"{length} tokens, rank {rank} of {plural(n, 'rank')}",
        [(length, n, rank)],
        right=right,
        tolerance=0,
    )


EXERCISE = Exercise(case, kind=Kind.LOCAL)
