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
    chunks,
    draw_layer,
    label_of,
    largest,
    there_and_back,
)

COLUMNS = (
    "One column of `dense.weight` for each input: rank r keeps block r of the columns, "
    "`dense.weight.chunk(world_size, dim=1)[rank]`."
)
COMPLETE = (
    "All ranks hold the same output, and one loss depends on it: its gradient arrives complete on every "
    "rank. SumOverRanks.backward hands it on as it is."
)
COUNTS = "The bias counts {n} times: add it once, after the sum."


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
    shift = torch.zeros(1, dtype=x.dtype) if bias is None else bias
    reached = ("gradient of x",) * trained + ("gradient of weight",)
    return Case(
        label_of(x, weight, bias, trained),
        [(weight, bias, part, grad, trained) for part in inputs],
        right=parts,
        mistakes=[
            parts.mistake(COLUMNS, [{"weight": weight}] * n),
            parts.mistake(COLUMNS, [{"weight": part} for part in chunks(weight, n)]),
            parts.mistake(COLUMNS, [{"weight": part} for part in weight.tensor_split(n)]),
            parts.mistake(COLUMNS, [{"weight": weight[:, r::n]} for r in range(n)]),
            parts.mistake(
                "Every rank keeps the whole bias: it belongs to the outputs, and those are not cut.",
                [{"bias": part} for part in chunks(shift, n)] if bias is not None else [{}] * n,
            ),
            parts.mistake(COUNTS, [{"output": y + (n - 1) * shift}] * n),
            parts.mistake("The bias is missing.", [{"output": y - shift}] * n),
            parts.mistake(
                "This is the rank's own summand: the products of all ranks are summed.",
                [{"output": each + shift} for each in summands],
            ),
            parts.mistake(
                "The output is the sum, not the mean, of all ranks' products.",
                [{"output": (y - shift) / n + shift}] * n,
            ),
            parts.mistake(COMPLETE, [{name: own[name] * n for name in reached} for own in right]),
            parts.mistake(
                "The bias has a divided gradient: add the whole bias, after the sum.",
                [{"gradient of bias": None if bias is None else there["gradient of bias"] / n}] * n,
            ),
            parts.without(
                "gradient of bias",
                "Every rank adds the bias to the sum, so that every rank's copy gets the same gradient.",
            ),
            *(parts.without(name, LOST) for name in reached),
        ],
        facts={"bytes": y.nbytes, "bias": bias is not None},
    )


LOST = (
    "The output's gradient must find its way back: SumOverRanks.backward returns it, and nothing on the way "
    "is detached."
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
