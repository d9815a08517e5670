"""4.7 Split sum (10 min, ●●○○○)

- `reduce_scatter` adds up the tensors and leaves a part of the sum on each rank. What is missing if the
  length is not a multiple of the world size?
- Each part has `each = -(-len(x) // world_size)` elements, rounded up. Add zeros at the end until there are
  `each * world_size` elements, because zeros change no sum. Afterwards, drop the added elements.
- padded = torch.cat([x, x.new_zeros(each * world_size - len(x))]); out = x.new_empty(each);
  dist.reduce_scatter_single(out, padded). `r * each` elements come before rank r's part. So `len(x) - r *
  each` of the real `len(x)` elements are left for rank r and the ranks after it, which might be less than a
  part, or nothing.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb04_collectives.shared import share


def case(draw: Draw) -> Case:
    n, length = draw.ranks, draw.length()
    mine = draw.tensors((length,), draw.dtype(*SUMMED))
    # two numbers that cancel out, because a sum may be 0
    for x in mine[:: max(1, n - 1)] if length else ():
        x[0] = -mine[0][0]
    total = torch.stack(mine).sum(0)
    each = -(-length // n)
    return Case(
        f"{length} elements of {total.dtype}",
        [(x,) for x in mine],
        right=PerRank([total[share(length, n, rank)] for rank in range(n)]),
        facts={"each": each, "bytes": each * n * total.itemsize},
        scale=max((float(x.double().abs().max()) for x in mine if length), default=0.0),
    )


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("reduce_scatter",)),
        Calls("reduce_scatter", 1),
        Calls(bytes_per_call="bytes", text="passes each element once"),
    ),
)
