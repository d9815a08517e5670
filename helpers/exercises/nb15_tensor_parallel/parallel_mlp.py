"""15.3 A gated MLP (6 min, ●●○○○)

- Which two of the three products read the same x? How often must its gradient be summed?
- Begin with x = CopyToRanks.apply(x); gate and up both read it. The hidden elements are cut, so silu and the
  product need nobody. End with SumOverRanks.
- x = CopyToRanks.apply(x); hidden = silu(linear(x, gate)) * linear(x, up); return
  SumOverRanks.apply(linear(hidden, down))
"""

import torch
from torch.nn.functional import linear, silu

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks import run_block
from helpers.exercises.nb15_tensor_parallel.shared import (
    ENDINGS,
    cut_block,
    one_each_way,
    there_and_back,
    unequal,
)


def case(draw: Draw) -> Case:
    features, dtype = draw.whole(2, 5), draw.dtype(torch.float32, torch.float64)
    counts = unequal(draw, 4)
    shapes = {"x": (*draw.shape(least=1), features), "gate": (sum(counts), features)}
    shapes |= {"up": shapes["gate"], "down": (features, sum(counts))}
    x, *weights = (torch.randn(s, generator=draw.generator(), dtype=dtype) for s in shapes.values())
    block = cut_block(draw, mlp, x, dict(zip(list(shapes)[1:], weights, strict=True)), counts)
    # what gate says about x, and what up says, on each rank
    said = [
        there_and_back(two_inputs, {"by gate": x, "by up": x, **own}, block.grad)
        for own in ({k: v for k, v in own.items() if k != "x"} for own in block.own)
    ]
    by_gate, by_up = ([each[f"gradient of by {name}"] for each in said] for name in ("gate", "up"))
    return Case(
        f"hidden elements {' + '.join(map(str, counts))}, x of shape {tuple(x.shape)} and {dtype}",
        block.given(),
        right=block.parts,
        facts={"bytes": x.nbytes},
    )


def mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Compute the MLP of a Llama block; the hidden elements are rows of gate and up."""
    return two_inputs(x, x, gate, up, down)


def two_inputs(by_gate: torch.Tensor, by_up: torch.Tensor, *w: torch.Tensor) -> torch.Tensor:
    """Compute the same where gate and up each read an input of their own."""
    return linear(silu(linear(by_gate, w[0])) * linear(by_up, w[1]), w[2])


EXERCISE = Exercise(
    case,
    one_each_way(),
    failed=ENDINGS,
    kind=Kind.MODULE,
    programme=run_block,
    reported=("autograd", "outside", "in place", "pair"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
