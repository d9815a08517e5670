"""12.3 A fully sharded layer (45 min, ●●●●○, further)

- Inside a Function, autograd records nothing, so `Gather.apply(shard)` is a plain gather there. Where do you
  need to call it, and how often in one step?
- Sharded.forward: gather, compute `x @ weight.T`, and save `x` and the shard. backward: gather again; `grad @
  weight` is the gradient of x. To get the shard's gradient, pass the padded, flat `grad.T @ x` to
  reduce_scatter_single with ReduceOp.AVG.
- backward(ctx, grad): x, shard = ctx.saved_tensors; weight = Gather.apply(shard)[: ctx.shape.numel()]
  .view(ctx.shape); g = (grad.T @ x).flatten(); mine = torch.empty_like(shard);
  dist.reduce_scatter_single(mine, pad(g, (0, len(mine) * dist.get_world_size() - len(g))),
  op=dist.ReduceOp.AVG); return grad @ weight, mine, None, which is one value for each argument of forward.
"""

from itertools import pairwise

import torch

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.counted import LayerTraining, run_layers
from helpers.exercises.nb12_zero_and_fsdp.shared import FAILURE_ADVICE, largest_shard

STEPS = 2
ADVICE = {
    "parameters": "Store the shard as a `torch.nn.Parameter` in an attribute of the layer, so that an "
    "optimizer finds it.",
    "built": "After __init__, a rank should keep only its shard. A slice is a view, which keeps the whole "
    "storage, so `clone()` it. Later, you need only the shape of the whole weight.",
    "forward": "Your layer keeps the whole weight after forward. Autograd keeps the weight when it records "
    "`x @ weight.T`, and `ctx.save_for_backward(weight)` or an attribute keeps it as well. Save `x` and "
    "the shard instead, and gather again in backward.",
    "backward": "Your layer keeps a whole tensor after its backward: the gathered weight or its gradient. "
    "Keep only the shard's gradient. A view of the whole gradient would keep all of it.",
}
"""Advice by the name of the observation. The bytes may differ between runs, so no known mistake matches."""


def case(draw: Draw) -> Case:
    n, dtype, count = draw.ranks, draw.dtype(torch.float32, torch.float64), draw.of(1, 2, 2, 3)
    # the layers are so similar that half of any layer is smaller than any other whole layer
    widths = [draw.whole(18, 22) for _ in range(count + 1)]
    weights = [
        draw.laid_out(
            torch.randn(b, a, generator=draw.generator(), dtype=torch.float64).to(dtype) / a**0.5
        )
        for a, b in pairwise(widths)
    ]
    rows = [[draw.whole(1, 2) for _ in range(n)] for _ in range(STEPS)]
    steps = [
        [
            tuple(
                torch.randn(k, width, generator=draw.generator(), dtype=torch.float64).to(dtype)
                for width in (widths[0], widths[-1])
            )
            for k in each
        ]
        for each in rows
    ]
    trains_x, in_place, lr = count > 1 or draw.of(True, False), draw.of(True, False), 0.5
    given = [[(draw.laid_out(each[r][0]), each[r][1]) for each in steps] for r in range(n)]
    own = sum(largest_shard(b, n) * a for a, b in pairwise(widths)) * dtype.itemsize
    room = 64 + 2 * 4 * (sum(widths) + widths[0]) * dtype.itemsize
    # Zeroed gradients stay allocated. On one rank the shard is the whole weight, so a new gradient exceeds
    # the allowed bytes until it is added to the old one.
    most = (own + 64, own * (1 + in_place) + room, (2 + (n == 1)) * own + room)
    known: dict[int, str] = {}
    for k, weight in enumerate(weights if n > 1 else []):
        known[weight.nbytes] = f"as many elements as layer {k}'s whole weight"
        for padded in (
            largest_shard(weight.numel(), n),
            largest_shard(len(weight), n) * weight.shape[1],
        ):
            size = padded * n * dtype.itemsize
            known.setdefault(size, f"as many elements as layer {k}'s whole weight, padded")

    return Case(
        f"{plural(count, 'layer')}, widths {', '.join(map(str, widths))}, {dtype}",
        [(LayerTraining(weights, each, lr, trains_x, in_place, most, known),) for each in given],
        right=Reference(advice=ADVICE),
        facts={
            "gathers": 2 * count * STEPS,
            "scatters": count * STEPS,
            "bytes": max(largest_shard(b, n) * a for a, b in pairwise(widths)) * n * dtype.itemsize,
        },
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather", "reduce_scatter")),
        Calls(
            "all_gather",
            most="gathers",
            why="A layer gathers once in forward and once in backward.",
        ),
        Calls("reduce_scatter", "scatters", why="Call it once in each layer's backward."),
        Calls(bytes_per_call="bytes", text="nothing larger than a layer is sent"),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_layers,
    reported=("parameters", "built", "forward", "backward"),
    sizes=(1, 2, 3, 4),
)
