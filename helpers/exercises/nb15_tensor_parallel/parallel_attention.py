"""15.4 Attention by heads (10 min, ●●●○○, further)

- A head needs its own query, key and value, but nothing from other heads. Where are the heads combined?
- Apply CopyToRanks once. Then, for each of query, key and value, call linear, unflatten(-1, (-1, head_size))
  and transpose(1, 2). After calling scaled_dot_product_attention(..., is_causal=True), restore the shape
  (batch, time, heads * head_size), and apply `out` and SumOverRanks.
- q, k, v = (linear(x, w).unflatten(-1, (-1, head_size)).transpose(1, 2) for w in (query, key, value)); mixed
  = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
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
    size, features = draw.whole(2, 4), draw.whole(2, 6)
    dtype = draw.dtype(torch.float32, torch.float64)
    heads = draw_unequal_counts(draw, 3)
    inner = sum(heads) * size

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=draw.generator(), dtype=dtype)

    x = normal(draw.whole(1, 3), draw.whole(2, 5), features)
    weights = {name: normal(inner, features) for name in ("query", "key", "value")}
    weights["out"] = normal(features, inner)
    given = cut_block(draw, x, weights, [size * count for count in heads], size)
    return Case(
        f"heads {' + '.join(map(str, heads))} of {size} features, x of shape {tuple(x.shape)} and {dtype}",
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
