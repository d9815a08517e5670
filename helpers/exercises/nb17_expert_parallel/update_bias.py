"""17.3 Move the bias once per step (8 min, ●●○○○)

- Which counts must a rank know before it may change a bias that is the same on all ranks?
- Add up this rank's counts, sum them over the ranks in one call, and compare each sum with the mean of the
  sums. The sign of the difference shows in which direction to change the bias.
- total = torch.stack(counts).sum(0); dist.all_reduce(total); return bias + speed * (total.double().mean() -
  total).sign().to(bias).
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_update_bias


def case(draw: Draw) -> Case:
    experts, k = draw.whole(3, 6), draw.of(2, 3)
    dtype, generator = draw.dtype(torch.float32, torch.float64), draw.generator()
    bias = torch.randn(experts, generator=generator, dtype=dtype) * draw.of(0.1, 1.0)
    speed = draw.of(0.001, 0.01, 0.25)
    microbatches = draw.of(2, 3, 1)
    counts = [[draw.of(1, 3, 4, 0, 6) for _ in range(microbatches)] for _ in range(draw.ranks)]
    counts[draw.rank()][-1] = 5
    used = draw.of(experts, experts - 1)  # the last expert may get no token at all
    k = min(k, used)
    own = [[_choose(n, used, experts, k, generator) for n in tokens] for tokens in counts]
    if draw.of(True, False, False):  # so that the sum of one expert is the mean
        _put_at_mean(own[0][0], torch.stack([c for rank in own for c in rank]).sum(0))
    return Case(
        f"microbatches of {', '.join(str(tokens) for tokens in counts)} tokens, {experts} experts",
        [(bias, parts, speed) for parts in own],
        right=Reference({"new bias": max(1.0, largest(bias))}),
        facts={"bytes": experts * 8, "microbatches": microbatches},
        shown=f"bias, counts, speed={speed}",
    )


def _choose(
    tokens: int, used: int, experts: int, k: int, generator: torch.Generator
) -> torch.Tensor:
    """Return how many tokens chose each expert. Each token chooses k of the first `used` experts."""
    chosen = torch.rand(tokens, used, generator=generator).topk(k).indices
    return chosen.flatten().bincount(minlength=experts)


def _put_at_mean(counts: torch.Tensor, total: torch.Tensor) -> None:
    """Move choices so that the first expert's sum is the mean over the experts."""
    experts = len(total)
    rest = int(total.sum()) % experts
    counts[1] += (experts - rest) % experts
    mean = (int(total.sum()) + (experts - rest) % experts) // experts
    counts[0] += mean - int(total[0])
    counts[2] -= mean - int(total[0])
    if counts.min() < 0:
        shift = -int(counts.min())
        counts += shift


EXERCISE = Exercise(
    case,
    (
        Calls(
            exactly=1,
            bytes_per_call="bytes",
            missing="A rank's counts include only its tokens.",
            why="Add up the microbatches first, so that one all_reduce sums the counts of all experts.",
            large_advice="One number for each expert is enough.",
        ),
        WaitsForAll(),
    ),
    failed=(
        HangAdvice(
            "Every rank must call all_reduce once, with one count for each expert, even without tokens."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_update_bias,
    reported=("arguments",),
    sizes=(1, 2, 3, 4),
    count=20,
)
