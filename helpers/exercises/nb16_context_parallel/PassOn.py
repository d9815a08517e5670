"""16.2 Pass keys on, and gradients back (5 min, ●●○○○)

- In forward, a rank's tensor is sent to the next rank and used there. So which rank knows the gradient of
  this tensor?
- You need to send the gradient in the opposite direction, to the previous rank.
- forward: return shift(x, 1). backward: return shift(grad, -1).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb16_context_parallel.in_ranks import run_pass_on


def case(draw: Draw) -> Case:
    n, shape, generator = draw.ranks, draw.shape(), draw.generator()
    dtype = draw.of(torch.float32, torch.float64, torch.int64)
    # draw whole numbers, because a tensor must keep the same bits when passed on
    xs, second_xs, grads, second_grads = (
        [torch.randint(-9999, 9999, shape, generator=generator).to(dtype) for _ in range(n)]
        for _ in range(4)
    )
    whole = dtype is torch.int64
    parts = NamedParts(
        [
            {
                "output": xs[r - 1],
                "output of a second call": second_xs[r - 1],
                "gradient of x": None if whole else grads[(r + 1) % n],
                "gradient of the second x": None if whole else second_grads[(r + 1) % n],
            }
            for r in range(n)
        ]
    )
    return Case(
        f"{shape} of {dtype}",
        list(zip(xs, second_xs, grads, second_grads, strict=True)),
        right=parts,
        tolerance=0,
        facts={"bytes": 2 * xs[0].nbytes * (1 if whole else 2)},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Calls(
            "send",
            total_bytes="bytes",
            why="Each call sends once in forward, and once in backward.",
        ),
    ),
    failed=(
        HangAdvice(
            "Each rank sends to one neighbor and receives from the other, and all ranks must shift the "
            "same way. Start both transfers before you wait for either."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_pass_on,
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
