"""15.1 A column-parallel layer (12 min, ●●●○○)

- Forward needs nothing from other ranks. Look again at the two gradients of x that the ranks computed: what
  is missing from each?
- CopyToRanks.forward returns x.view_as(x); its backward clones the gradient, sums it with all_reduce and
  returns it. The layer keeps `dense.weight.chunk(world_size)[rank]`, cloned, as a Parameter.
- forward: return linear(CopyToRanks.apply(x), self.weight, self.bias). In __init__: part =
  dense.weight.detach().chunk(dist.get_world_size())[dist.get_rank()]; self.weight =
  torch.nn.Parameter(part.clone()); the bias likewise, if there is one.
"""

from torch.nn.functional import linear

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks.cut import run_layer
from helpers.exercises.nb15_tensor_parallel.shared import (
    ENDINGS,
    by_name,
    draw_layer,
    label_of,
    there_and_back,
)


def case(draw: Draw) -> Case:
    n = draw.ranks
    x, weight, bias, grad, trained = draw_layer(draw, draw.whole(2, 5), draw.whole(1, 3) * n)
    own, shifts = weight.chunk(n), bias.chunk(n) if bias is not None else [None] * n
    grads = [part.contiguous() for part in grad.chunk(n, -1)]
    parts = [{"x": x, "weight": w, "bias": b} for w, b in zip(own, shifts, strict=True)]
    there = [there_and_back(linear, part, g) for part, g in zip(parts, grads, strict=True)]
    total = sum(each["gradient of x"] for each in there) if trained else None
    right = [
        {"weight": w, "bias": b, "memory": "", "autograd": "", **each}
        | {"gradient of x": total, "in place": ""}
        for w, b, each in zip(own, shifts, there, strict=True)
    ]
    return Case(
        label_of(x, weight, bias, trained),
        [(weight, bias, x, g, trained) for g in grads],
        right=by_name(right, largest(*there, total)),
        facts={"bytes": x.nbytes, "trained": int(trained)},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            phase="forward", exactly=0, why="Each rank has all of x and returns its own columns."
        ),
        Calls(
            phase="backward",
            exactly="trained",
            each="bytes",
            missing="Each rank computes one summand of x's gradient.",
            why="Only the gradient of x is summed, and only if x needs one.",
            why_large="It has the shape of x.",
        ),
        Awaited(),
    ),
    failed=ENDINGS,
    kind=Kind.MODULE,
    driver=run_layer,
    reported=("memory", "autograd", "outside", "in place"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
