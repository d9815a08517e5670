"""15.3 A gated MLP (6 min, ●●○○○)

- Which two of the three products read the same x? How often must the gradient of this x be summed?
- Begin with x = CopyToRanks.apply(x), which both gate and up read. The hidden elements are split, so silu and
  the product need no communication. Apply SumOverRanks at the end.
- x = CopyToRanks.apply(x); hidden = silu(linear(x, gate)) * linear(x, up); return
  SumOverRanks.apply(linear(hidden, down))
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks.cut import run_block
from helpers.exercises.nb15_tensor_parallel.shared import (
    FAILURE_ADVICE,
    LAYER_REFERENCE,
    cut_block,
    draw_unequal_counts,
    one_sum_rules,
)


def case(draw: Draw) -> Case:
    features, dtype = draw.whole(2, 5), draw.dtype(torch.float32, torch.float64)
    counts = draw_unequal_counts(draw, 4)
    shapes = {"x": (*draw.shape(least=1), features), "gate": (sum(counts), features)}
    shapes |= {"up": shapes["gate"], "down": (features, sum(counts))}
    x, *weights = (torch.randn(s, generator=draw.generator(), dtype=dtype) for s in shapes.values())
    given = cut_block(draw, x, dict(zip(list(shapes)[1:], weights, strict=True)), counts)
    return Case(
        f"hidden elements {' + '.join(map(str, counts))}, x of shape {tuple(x.shape)} and {dtype}",
        given,
        right=LAYER_REFERENCE,
        facts={"bytes": x.nbytes},
    )


EXERCISE = Exercise(
    case,
    one_sum_rules(),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_block,
    reported=("autograd", "outside", "in place", "pair"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
