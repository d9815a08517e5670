"""4.8 Contiguous first (10 min, ●●○○○, further)

- A block of columns is a view: its elements are not next to each other in memory. Which of your tensors are
  such views? You can find out by calling `t.is_contiguous()`.
- Make every part contiguous before the call. And look at the receiving tensor: `torch.empty_like` copies the
  strides of its argument.
- each = x.shape[1] // world_size; parts = [p.contiguous() for p in x.chunk(world_size, dim=1)] on src; out =
  torch.empty(x.shape[0], each); dist.scatter(out, parts, src=src); return out.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb04_collectives.shared import ROOT_ONLY_ADVICE


def case(draw: Draw) -> Case:
    n, rows, src = draw.ranks, draw.whole(1, 5), draw.rank()
    columns, turned = n * draw.whole(1, 3), draw.of(True, False)
    x = draw.tensor((rows, columns), torch.float32)
    x = x.T.contiguous().T if turned else x
    parts = x.chunk(n, dim=1)
    return Case(
        f"a {rows}x{columns} matrix, from rank {src}" + ", a transposed view" * turned,
        [(x if rank == src else torch.zeros_like(x), src) for rank in range(n)],
        right=PerRank([part.contiguous() for part in parts]),
        facts={"src": src, "bytes": x.nbytes},
        tolerance=0,
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("scatter",)),
        Root("src"),
        Calls("scatter", 1),
        Calls(bytes_per_call="bytes", text="passes each column at most once"),
    ),
    failed=ROOT_ONLY_ADVICE,
)
