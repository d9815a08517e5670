"""17.2 Route by score and bias (15 min, ●●●○○)

- Which numbers decide where a token goes, and which ones say how much each of its experts counts? And which
  counts must a rank know before it may change a bias that is the same on all ranks?
- scores = logits.sigmoid(); topk(k) of scores + bias gives the experts, and scores.gather(1, experts) their
  weights before the division. Count with bincount(minlength=len(bias)), sum the counts over the ranks, and
  compare each one with their mean.
- weights = chosen / chosen.sum(1, keepdim=True); counts = experts.flatten().bincount(minlength=len(bias));
  dist.all_reduce(counts); new bias = bias + speed * (counts.double().mean() - counts).sign().to(bias); return
  experts, weights, new bias. A rank without tokens makes the same calls.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_routing

MIN_GAP = 1e-3
"""The smallest difference between sums of score and bias in a row. Rounding must not choose the expert."""


def case(draw: Draw) -> Case:
    experts = draw.whole(3, 6)
    k = draw.of(2, 2, 3)
    counts = [draw.of(1, 2, 4, 5, 0) for _ in range(draw.ranks)]
    counts[draw.rank()] = 3
    dtype, generator = draw.dtype(torch.float32, torch.float64), draw.generator()
    bias = torch.randn(experts, generator=generator, dtype=dtype) * draw.of(0.1, 0.4, 2.0)
    logits = torch.randn(sum(counts), experts, generator=generator, dtype=dtype)
    while _smallest_gap(logits.sigmoid() + bias) < MIN_GAP:
        logits = torch.randn(logits.shape, generator=generator, dtype=dtype)
    grad = torch.randn(sum(counts), k, generator=generator, dtype=dtype)
    speed = draw.of(0.001, 0.01, 0.25)
    parts = zip(logits.split(counts), grad.split(counts), strict=True)
    return Case(
        f"{', '.join(map(str, counts))} tokens, {k} of {experts} experts, {dtype}",
        [(own.clone(), bias, k, speed, back.clone()) for own, back in parts],
        right=Reference(
            {"weights": 1.0, "new bias": max(1.0, largest(bias)), "gradient of logits": 1.0}
        ),
        facts={"bytes": experts * 8, "k": k},
        shown=f"logits, bias, k={k}, speed={speed}",
    )


def _smallest_gap(sums: torch.Tensor) -> float:
    """Return the smallest difference of two numbers in a row."""
    return float(sums.sort(1).values.diff(dim=1).min())


EXERCISE = Exercise(
    case,
    (
        Calls(
            phase="forward",
            most=1,
            bytes_per_call="bytes",
            why="One all_reduce carries the counts of all experts.",
            large_advice="One number for each expert is enough.",
        ),
        Calls(
            phase="backward",
            exactly=0,
            why="The weights of a rank's own tokens depend on its own logits only.",
        ),
        WaitsForAll(),
    ),
    failed=(
        HangAdvice(
            "Every rank calls all_reduce once, with one count for each expert, even without tokens."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_routing,
    reported=("result",),
    sizes=(1, 2, 3, 4, 5, 6),
)
