"""16.1 Merge two parts (10 min, ●●○○○)

- An output is a weighted sum of values, divided by the sum of the weights, and lse is the logarithm of the
  weights' sum. What are the two divisors, and what is the divisor for both parts together?
- The new sum of weights is exp(lse_a) + exp(lse_b), and each output counts with its share of this sum.
  Compute with differences of logarithms, because exp(1000) is inf, but exp(1000 - 1001) is not.
- lse = torch.logaddexp(lse_a, lse_b); out = out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(); return
  out, lse.
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb16_context_parallel.in_ranks import run_merge


def case(draw: Draw) -> Case:
    shape = (draw.whole(1, 2), draw.whole(1, 3), draw.whole(1, 4))
    dtype, generator = draw.dtype(torch.float32, torch.float64), draw.generator()
    kind = draw.of("near", "near", "far", "high", "low", "one saw nothing", "the other saw nothing")
    size = draw.whole(2, 3)
    a, b = (torch.randn((*shape, size), generator=generator, dtype=dtype) for _ in range(2))
    lse_a, lse_b = (
        torch.randn((*shape, 1), generator=generator, dtype=dtype) * 2 for _ in range(2)
    )
    move = {"far": (3.0, 0.0), "high": (900.0, 900.0), "low": (-900.0, -900.0)}.get(
        kind, (0.0, 0.0)
    )
    lse_a, lse_b = lse_a + move[0], lse_b + move[1]
    if kind == "one saw nothing":
        lse_a = torch.full_like(lse_a, -1e30)
    if kind == "the other saw nothing":
        lse_b = torch.full_like(lse_b, -1e30)
    given = {"out_a": a, "lse_a": lse_a, "out_b": b, "lse_b": lse_b}
    grads = {
        "out": torch.randn(a.shape, generator=generator, dtype=dtype),
        "lse": torch.randn(lse_a.shape, generator=generator, dtype=dtype),
    }
    return Case(
        f"{kind}, {tuple(a.shape)} of {dtype}",
        [(given, grads)],
        Reference(16.0, ignore=("result",)),
    )


EXERCISE = Exercise(case, kind=Kind.MODULE, driver=run_merge, sizes=(1,))
