"""15.1 A column-parallel layer (12 min, ●●●○○)

- Forward needs nothing from other ranks. Look again at the two gradients of x computed by the ranks: what is
  missing from each of them?
- CopyToRanks.forward returns x.view_as(x). Its backward clones the gradient, sums the clone with all_reduce
  and returns it. The layer stores a clone of `dense.weight.chunk(world_size)[rank]` as a Parameter.
- forward: return linear(CopyToRanks.apply(x), self.weight, self.bias). In __init__: part =
  dense.weight.detach().chunk(dist.get_world_size())[dist.get_rank()]; self.weight =
  torch.nn.Parameter(part.clone()); do the same for the bias, if there is one.
"""

from dataclasses import replace

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks.cut import SECOND_LAYERS, run_layer
from helpers.exercises.nb15_tensor_parallel.shared import (
    FAILURE_ADVICE,
    LAYER_REFERENCE,
    draw_layer,
    layer_label,
)


def case(draw: Draw) -> Case:
    n = draw.ranks
    x, weight, bias, grad, trained = draw_layer(draw, draw.whole(2, 5), draw.whole(1, 3) * n)
    grads = [part.contiguous() for part in grad.chunk(n, -1)]
    second = draw.of(*SECOND_LAYERS)
    return Case(
        layer_label(x, weight, bias, trained) + f", second layer {second}" * bool(second),
        [(weight, bias, x, g, trained, second) for g in grads],
        right=replace(LAYER_REFERENCE, ignore=("outside",)),
        facts={"bytes": x.nbytes, "trained": int(trained)},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(phase="forward", exactly=0, why="Each rank has all of x and returns its columns."),
        Calls(
            phase="backward",
            exactly="trained",
            bytes_per_call="bytes",
            missing="Each rank computes only one term of x's gradient.",
            why="Sum only the gradient of x, and only if x needs a gradient.",
            large_advice="The summed gradient has the shape of x.",
        ),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_layer,
    reported=("memory", "autograd", "outside", "in place"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
