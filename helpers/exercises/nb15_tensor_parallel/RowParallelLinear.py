"""15.2 A row-parallel layer (8 min, ●●○○○)

- Each rank computes one summand of the output. And the bias: how often may it be added?
- SumOverRanks.forward clones x, sums it with all_reduce and returns it; its backward returns the gradient as
  it is. The layer keeps its columns of the weight, `dense.weight.chunk(world_size, dim=1)[rank]`, and the
  whole bias.
- forward: total = SumOverRanks.apply(linear(x, self.weight)); return total if self.bias is None else total +
  self.bias
"""

from typing import Any

import torch
from torch.nn.functional import linear

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks import run_layer
from helpers.exercises.nb15_tensor_parallel.shared import (
    ENDINGS,
    WITHOUT_BIAS,
    by_name,
    draw_layer,
    label_of,
    largest,
    there_and_back,
)

COMPLETE = (
    "All ranks hold the same output, and one loss depends on it: its gradient arrives complete on every "
    "rank. SumOverRanks.backward hands it on as it is."
)


def case(draw: Draw) -> Case:
    n, own = draw.ranks, draw.whole(1, 3)
    x, weight, bias, grad, trained = draw_layer(draw, own * n, draw.whole(2, 5))
    inputs, cut = [part.contiguous() for part in x.chunk(n, -1)], weight.chunk(n, 1)
    there = there_and_back(linear, {"x": x, "weight": weight, "bias": bias}, grad)
    y, of_x, of_w = (there[name] for name in ("output", "gradient of x", "gradient of weight"))
    before = {"memory": "", "autograd": "", "outside": ""}
    right: list[dict[str, Any]] = [
        {
            "weight": cut[r],
            "bias": bias,
            **before,
            **there,
            "gradient of x": of_x.chunk(n, -1)[r] if trained else None,
            "gradient of weight": of_w.chunk(n, 1)[r],
            "in place": "",
        }
        for r in range(n)
    ]
    summands = [linear(part, w) for part, w in zip(inputs, cut, strict=True)]
    parts = by_name(right, largest(there, *summands))
    torch.zeros(1, dtype=x.dtype) if bias is None else bias
    ("gradient of x",) * trained + ("gradient of weight",)
    return Case(
        label_of(x, weight, bias, trained),
        [(weight, bias, part, grad, trained) for part in inputs],
        right=parts,
        facts={"bytes": y.nbytes, "bias": bias is not None},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        CallsIn(
            "forward",
            1,
            most_bytes="bytes",
            missing="What a rank computes is one summand of the output.",
            why="The products of all ranks are summed once.",
            why_large="What is summed has the shape of the output.",
        ),
        CallsIn(
            "backward",
            0,
            why="The gradient of the sum is complete on every rank: hand it on as it is.",
        ),
        AwaitedByHand(),
    ),
    failed=(
        Failed(
            "cannot be multiplied",
            "`x` holds this rank's columns of the input already: do not cut it again. The weight's part has "
            "as many columns: `dense.weight.chunk(world_size, dim=1)[rank]`.",
        ),
        WITHOUT_BIAS,
        *ENDINGS,
    ),
    kind=Kind.MODULE,
    programme=run_layer,
    reported=("memory", "autograd", "outside", "in place"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
