"""17.3 The load-balancing loss (15 min, ●●●○○, further)

- The loss is a sum of products of two numbers for each expert. Which of these must be known over all ranks
  before they are multiplied, and through which does the gradient flow?
- Count the tokens that choose each expert, add up the probabilities of each expert, and sum both over the
  ranks in one all_reduce. The count of all tokens is the sum of the counts. Gradients flow through this
  rank's own probabilities only.
- p = logits.softmax(1); both = stack([argmax bincount, p.sum(0).detach()]); all_reduce(both); n =
  both[0].sum(); others = both[1] - p.sum(0).detach(); return E * (both[0] / n * (others + p.sum(0)) /
  n).sum().
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_balance


def case(draw: Draw) -> Case:
    n, experts = draw.ranks, draw.whole(2, 5)
    counts = [draw.of(1, 2, 4, 5, 0) for _ in range(n)]
    counts[draw.rank()] = 3
    dtype = draw.dtype(torch.float64, torch.float32)
    own = [torch.randn(c, experts, generator=draw.generator(), dtype=dtype) for c in counts]
    if draw.of(True, False):
        for rank, logits in enumerate(own):
            logits[:, rank % experts] += 2
    # counts divided by counts are float32 in torch, whatever the dtype of the logits
    return Case(
        f"{', '.join(map(str, counts))} tokens, {experts} experts, {dtype}",
        [(logits,) for logits in own],
        right=Reference(1e3 if dtype == torch.float64 else 1.0),
        facts={"bytes": (2 * experts + 1) * 8},
    )


EXERCISE = Exercise(
    case,
    (
        Calls(
            phase="forward",
            exactly=1,
            bytes_per_call="bytes",
            missing="A rank knows its own tokens only.",
            why="One all_reduce carries counts and probabilities together.",
            large_advice="Two numbers for each expert are enough.",
        ),
        Calls(
            phase="backward",
            exactly=0,
            why="Each rank's own gradient is complete without the others.",
        ),
        WaitsForAll(),
    ),
    kind=Kind.MODULE,
    driver=run_balance,
    reported=("result",),
    sizes=(2, 3, 4),
    count=16,
)
