"""17.1 Merge two parts (10 min, ●●○○○)

- An output is a sum of values, divided by the sum of the weights; lse is the logarithm of that sum. What are
  the two divisors, and what is the new one?
- The new sum of weights is exp(lse_a) + exp(lse_b). Each output counts with its share of it. Work with
  differences of logarithms: exp(1000) is inf, exp(1000 - 1001) is not.
- lse = torch.logaddexp(lse_a, lse_b); out = out_a * (lse_a - lse).exp() + out_b * (lse_b - lse).exp(); return
  out, lse.
"""

from typing import Any

import torch

from helpers.checks.author import *

OVERFLOW = (
    "The lse of a part may be in the hundreds, and exp of it is inf (or 0, and then a part is lost): first "
    "take the new lse away, then exp. `torch.logaddexp` adds two such numbers safely."
)


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
    lse = torch.logaddexp(lse_a, lse_b)
    share_a, share_b = (lse_a - lse).exp(), (lse_b - lse).exp()
    right = (a * share_a + b * share_b, lse)
    return Case(
        f"{kind}, {tuple(a.shape)} of {dtype}",
        [(a, lse_a, b, lse_b)],
        right=right,
        scale=16.0,
        mistakes=[
            Mistake(lambda got, rank: _undefined(got), OVERFLOW),
            out("This is the mean: a part counts by its sum of weights.", (a + b) / 2),
            out("These are the two outputs added: each counts with its share.", a + b),
            out("The shares are the wrong way round.", a * share_b + b * share_a),
            out(
                "lse is a logarithm: a part counts with exp(lse).",
                (a * lse_a + b * lse_b) / (lse_a + lse_b),
            ),
            lse_is(
                "The sum of all weights is exp(lse_a) + exp(lse_b): lse is the logarithm of that.",
                lse_a + lse_b,
            ),
            lse_is("The larger of the two is not their sum.", torch.maximum(lse_a, lse_b)),
            lse_is("This is the sum of the weights: lse is its logarithm.", lse.exp()),
        ],
    )


def _undefined(got: Any) -> bool:
    return any(not bool(part.isfinite().all()) for part in got)


def out(words: str, value: torch.Tensor) -> Mistake:
    """Make a mistake of what the first part of the result is."""
    return Mistake(lambda got, rank: same(value, got[0]), words)


def lse_is(words: str, value: torch.Tensor) -> Mistake:
    """Make a mistake of what the second part of the result is."""
    return Mistake(lambda got, rank: same(value, got[1]), words)


EXERCISE = Exercise(case, kind=Kind.LOCAL)
