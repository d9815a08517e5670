"""13.2 Checkpoint the activations (10 min, ●●○○○)

- You can use `torch.utils.checkpoint` for this. Which of its two modes works if x needs no gradient?
- Call checkpoint(block, x, use_reentrant=False) instead of block(x) for the blocks whose index is a multiple
  of `every`.
- for i, block in enumerate(blocks): x = checkpoint(block, x, use_reentrant=False) if i % every == 0 else
  block(x). Then return x.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb13_fsdp_in_practice.in_ranks import CheckpointInputs, run_checkpointed

RETAINED_ADVICE = (
    "After forward, retain only the input of each checkpointed block, and the output of the last "
    "block."
)


def case(draw: Draw) -> Case:
    n, depth = draw.ranks, draw.whole(3, 5)
    every = draw.of(1, 2, 2, 3)
    learns, dtype = draw.of(True, False), draw.dtype(torch.float32, torch.float64)
    tokens, width = draw.whole(10, 14), draw.whole(2, 4)
    hidden, generator = 8 * width, draw.generator()

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    weights = [
        (random(width, hidden) / width**0.5, random(hidden, width) / hidden**0.5, random(hidden))
        for _ in range(depth)
    ]
    xs, grads = ([random(tokens, width) for _ in range(n)] for _ in range(2))
    seeds = [draw.whole(0, 10**6) for _ in range(n)]
    marked = [i % every == 0 for i in range(depth)]
    small, large = tokens * width * dtype.itemsize, tokens * hidden * dtype.itemsize
    # a block without checkpointing keeps the inputs of gelu and of the second product, and its mask
    most = (depth + 2) * small + marked.count(False) * (2 * large + tokens * hidden) + large // 2
    return Case(
        f"{plural(depth, 'block')}, every {every}, {tokens} x {width} of {dtype}, x "
        f"{'learns' if learns else 'does not learn'}",
        [
            (CheckpointInputs(weights, xs[r], grads[r], every, seeds[r], learns, most),)
            for r in range(n)
        ],
        right=Reference(32.0, {"held": RETAINED_ADVICE}),
        facts={"gathers": depth, "backward": 2 * depth},
        seconds=20.0,
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather", "reduce_scatter")),
        Calls(phase="forward", exactly="gathers", why="Each block is gathered once in forward."),
        Calls(
            phase="backward",
            exactly="backward",
            why="Checkpoint the call of the whole block, so that its weights are gathered once in backward.",
        ),
    ),
    failed=(
        CrashAdvice(
            "does not require grad",
            "The output has no graph. If x needs no gradient, torch's reentrant checkpoint "
            "(`use_reentrant=True`) also drops the weights' gradients, and so does no_grad around forward.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_checkpointed,
    reported=("held", "runs of each block"),
    sizes=(2, 3),
    count=12,
)
