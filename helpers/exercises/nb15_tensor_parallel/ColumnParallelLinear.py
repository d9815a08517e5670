"""15.1 A column-parallel layer (12 min, ●●●○○)

- Forward needs nothing from anybody. Look again at the two gradients of x that the ranks computed: what is
  each of them short of?
- CopyToRanks.forward returns x.view_as(x); its backward clones the gradient, sums it with all_reduce and
  returns it. The layer keeps `dense.weight.chunk(world_size)[rank]`, cloned, as a Parameter.
- forward: return linear(CopyToRanks.apply(x), self.weight, self.bias). In __init__: part =
  dense.weight.detach().chunk(dist.get_world_size())[dist.get_rank()]; self.weight =
  torch.nn.Parameter(part.clone()); the bias likewise, if there is one.
"""

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


def case(draw: Draw) -> Case:
    n, rows = draw.ranks, draw.whole(1, 3)
    x, weight, bias, grad, trained = draw_layer(draw, draw.whole(2, 5), rows * n)
    own, shifts = weight.chunk(n), bias.chunk(n) if bias is not None else [None] * n
    given = [(own[r], shifts[r], x, grad.chunk(n, -1)[r].contiguous(), trained) for r in range(n)]
    there = [there_and_back(linear, {"x": x, "weight": w, "bias": b}, g) for w, b, _, g, _ in given]
    of_x = [each["gradient of x"] for each in there]
    total = sum(of_x) if trained else None
    before = {"memory": "", "autograd": ""}
    right = [
        {
            "weight": own[r],
            "bias": shifts[r],
            **before,
            **there[r],
            "gradient of x": total,
            "in place": "",
        }
        for r in range(n)
    ]
    parts = by_name(right, largest(*there, total))
    linear(x, weight, bias)
    return Case(
        label_of(x, weight, bias, trained),
        [(weight, bias, *each[2:]) for each in given],
        right=parts,
        facts={"bytes": x.nbytes, "trained": int(trained), "bias": bias is not None},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        CallsIn("forward", 0, why="Each rank has all of x and returns its own columns."),
        CallsIn(
            "backward",
            "trained",
            most_bytes="bytes",
            missing="What a rank knows of x's gradient is one summand.",
            why="Only the gradient of x is summed, and only if somebody asks for it.",
            why_large="It has the shape of x.",
        ),
        AwaitedByHand(),
    ),
    failed=(
        Failed(
            "cannot be multiplied",
            "`dense.weight` has one row for each output: column-parallel cuts the rows, dimension 0, and x "
            "is multiplied by the transpose, as `linear` does.",
        ),
        Failed(
            "expanded size|size of tensor a",
            "One bias for each output of this rank: cut the bias as you cut the rows of the weight.",
        ),
        WITHOUT_BIAS,
        *ENDINGS,
    ),
    kind=Kind.MODULE,
    programme=run_layer,
    reported=("memory", "autograd", "outside", "in place"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
