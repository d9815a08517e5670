"""4.2 Scatter rows (15 min, ●●○○○)

- All parts of one `scatter` have the same shape. How can you change a matrix of 7 rows so that it can be cut
  into 3 equal parts?
- Rounding up, each rank gets `each = -(-rows // world_size)` rows (`//` rounds down, and the two minus signs
  make it round up). Rank `src` adds rows of zeros until there are `each * world_size` rows. Every rank
  receives `each` rows and drops the added ones.
- On src: padded = torch.zeros(each * world_size, columns, dtype=x.dtype), padded[:rows] = x, parts =
  list(padded.split(each)); elsewhere parts = None. dist.scatter(out, parts, src=src); return
  out[: max(0, rows - rank * each)].
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb04_collectives.shared import ROOT_ONLY_ADVICE, share


def case(draw: Draw) -> Case:
    n, rows, src = draw.ranks, draw.length(least=1), draw.rank()
    x = draw.tensor((rows, draw.whole(1, 3)))
    each = -(-rows // n)
    if rows > 1:
        # An answer must not leave out a row because it consists of zeros
        x[draw.whole(0, rows - 1)] = 0
    return Case(
        f"{rows} rows of {x.dtype}, from rank {src}",
        [(x if rank == src else torch.zeros_like(x), src) for rank in range(n)],
        right=PerRank([x[share(rows, n, rank)] for rank in range(n)]),
        facts={"src": src, "rows": rows, "each": each, "bytes": each * n * x.shape[1] * x.itemsize},
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("scatter",)),
        Root("src"),
        Calls("scatter", 1),
        Calls(
            bytes_per_call="bytes",
            text="passes no more rows than needed",
            why="Pass only the rows that the ranks need.",
        ),
    ),
    failed=ROOT_ONLY_ADVICE,
)
