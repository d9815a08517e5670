"""15.2 A row-parallel layer (8 min, ●●○○○)

- The output is a sum with one term from each rank. So how many times may you add the bias?
- SumOverRanks.forward clones x, sums the clone with all_reduce and returns it. Its backward returns the
  gradient unchanged. The layer stores its columns of the weight, `dense.weight.chunk(n, dim=1)[rank]` with n
  = dist.get_world_size() and rank = dist.get_rank(), and the whole bias.
- forward: total = SumOverRanks.apply(linear(x, self.weight)); return total if self.bias is None else total +
  self.bias
"""

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
    x, weight, bias, grad, trained = draw_layer(draw, draw.whole(1, 3) * n, draw.whole(2, 5))
    inputs = [part.contiguous() for part in x.chunk(n, -1)]
    second = draw.of(*SECOND_LAYERS)
    return Case(
        layer_label(x, weight, bias, trained) + f", second layer {second}" * bool(second),
        [(weight, bias, part, grad, trained, second) for part in inputs],
        right=LAYER_REFERENCE,
        facts={"bytes": grad.nbytes},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            phase="forward",
            exactly=1,
            bytes_per_call="bytes",
            missing="Each rank computes only one term of the output's sum.",
            why="Sum the products of all ranks once.",
            large_advice="The summed tensor has the shape of the output.",
        ),
        Calls(
            phase="backward",
            exactly=0,
            why="The gradient of the sum is complete on every rank, so return it unchanged.",
        ),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_layer,
    reported=("memory", "autograd", "outside", "in place"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
