"""17.2 Route by score and bias (10 min, ●●○○○)

- Which numbers determine a token's experts, and which numbers determine the weight of each of these experts?
- scores = logits.sigmoid(); topk(k) of scores + bias gives the experts, and scores.gather(1, experts) gives
  their weights before the division. Count with bincount(minlength=len(bias)).
- chosen = scores.gather(1, experts); weights = chosen / chosen.sum(1, keepdim=True); counts =
  experts.flatten().bincount(minlength=len(bias)); return experts, weights, counts.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_routing

MIN_GAP = 1e-3
"""The smallest difference between two sums of score and bias in a row, so that rounding chooses no expert."""


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
    parts = zip(logits.split(counts), grad.split(counts), strict=True)
    return Case(
        f"{', '.join(map(str, counts))} tokens, {k} of {experts} experts, {dtype}",
        [(own.clone(), bias, k, back.clone()) for own, back in parts],
        right=Reference({"weights": 1.0, "gradient of logits": 1.0}),
        facts={"k": k},
        shown=f"logits, bias, k={k}",
    )


def _smallest_gap(sums: torch.Tensor) -> float:
    """Return the smallest difference between two numbers in the same row."""
    return float(sums.sort(1).values.diff(dim=1).min())


EXERCISE = Exercise(
    case,
    (
        Calls(
            phase="forward",
            exactly=0,
            why="The choices and counts of a rank's tokens depend only on its logits.",
        ),
        Calls(
            phase="backward",
            exactly=0,
            why="The weights of a rank's tokens depend only on its logits.",
        ),
    ),
    failed=(
        CrashAdvice(
            "modified by an inplace operation",
            "A tensor that backward needs was changed in place, perhaps the scores by `+=`. Create a new "
            "tensor: `scores + bias`.",
        ),
        CrashAdvice(
            "selected index k out of range",
            "There are fewer than k numbers along this dimension. Choose among the experts, dimension 1: a "
            "rank may have fewer than k tokens, or none.",
        ),
        CrashAdvice(
            r"(?s)must match the size of tensor.*sum\(",
            "The sizes don't match. `sum(1)` drops the dimension over which it sums: with `keepdim=True`, "
            "there is one divisor for each token, (n, 1).",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_routing,
    reported=("result",),
    sizes=(1, 2, 3),
    count=16,
)
