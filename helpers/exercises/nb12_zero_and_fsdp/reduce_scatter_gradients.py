"""12.2 Scatter the gradients (6 min, ●●○○○)

- After this call, no rank needs a whole gradient any more. Which collective adds up the gradients and leaves
  one part on each rank?
- Join the flat gradients by calling torch.cat, pad to a multiple of the world size, and let
  `dist.reduce_scatter_single` write into a new tensor of the share's length.
- n = dist.get_world_size(); flat = torch.cat([p.grad.flatten() for p in params]); size = -(-len(flat) // n);
  shard = flat.new_empty(size); dist.reduce_scatter_single(shard, pad(flat, (0, size * n - len(flat))),
  op=dist.ReduceOp.AVG); every p.grad = None.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.counted import run_scatter
from helpers.exercises.nb12_zero_and_fsdp.shared import (
    FAILURE_ADVICE,
    draw_shapes,
    equal_shards,
    flatten_all,
)

ADVICE = {
    "gradients": "Set `p.grad = None` for every parameter, which frees its storage.",
    "view": "A slice keeps the whole tensor allocated. Let reduce_scatter write into a tensor of the shard's "
    "length, or `clone()` the slice.",
    "memory": "You still keep a copy of all gradients after the call, in an attribute, in a list or in a "
    "different form.",
    "weights": "You changed the weights. Only reduce and scatter the gradients.",
}
"""Advice by the name of the observation. The bytes may differ between runs, so no known mistake matches."""


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(*FLOATS)
    shapes = draw.of(draw_shapes, draw_small_shapes)(draw, draw.whole(60, 90))
    grads = [[draw.tensor(s, dtype, 1 / 64) for s in shapes] for _ in range(n)]
    weights = [draw.tensor(s, dtype, 1.0) for s in shapes]
    whole = [flatten_all(each) for each in grads]
    own, item = len(equal_shards(whole[0], n)[0]), dtype.itemsize
    mean = torch.stack([each.double() for each in whole]).mean(0)
    cut = equal_shards(mean, n)
    seen = {"weights": weights, "gradients": "", "view": "", "memory": ""}
    parts = NamedParts(
        [{"shard": shard.to(dtype), **seen} for shard in cut],
        {"shard": largest(*whole), "weights": 1e-30},
        ADVICE,
    )
    names = "as many elements as all gradients, flat"
    known = (
        {own * n * item: f"{names} and padded", len(mean) * item: names}
        if len(mean) > own + 16
        else {}
    )

    return Case(
        f"gradients of {', '.join(str(s) for s in shapes)}, {dtype}",
        [(weights, grads[r], own * item, known) for r in range(n)],
        right=parts,
        facts={"bytes": own * n * item, "own": own},
    )


def draw_small_shapes(draw: Draw, min_length: int) -> list[tuple[int, ...]]:
    """Draw shapes with so few elements that some shards may contain nothing but zeros."""
    return [draw.shape((0, 1, 2, 3), least=1)]


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("reduce_scatter",)),
        Calls("reduce_scatter", 1, why="Join the gradients first."),
        Calls(bytes_per_call="bytes", text="each gradient is sent once"),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_scatter,
    reported=("gradients", "view", "memory"),
)
