"""17.1 Tokens to their experts (20 min, ●●●●○)

- all_to_all_single sends consecutive rows to consecutive ranks. So how should you order the tokens, and which
  numbers does the receiver need to know beforehand?
- gate, choice = (x @ router.T).softmax(1).max(1); order = choice.argsort(). Get the counts by calling
  bincount(minlength=world_size), and exchange them. Then call Exchange.apply(x[order], sends, receives), the
  expert, and Exchange.apply again with the two lists swapped. Restore the order, and multiply by the gate.
- Call dist.all_to_all_single(receives, sends) with int64 tensors, then .tolist() on both. At the end: y =
  torch.empty_like(back); y[order] = back; return gate[:, None] * y.
"""

from collections.abc import Sequence

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import route_tokens

FAR_LOGIT = 40.0
"""The distance by which the logits of an expert that no token chooses are below all others."""


def case(draw: Draw) -> Case:
    n, features, dtype = (
        draw.ranks,
        draw.whole(2, 4),
        draw.dtype(torch.float64, torch.float64, torch.float32),
    )
    kind = draw.of("any", "any", "one is chosen by none", "one is chosen by all")
    counts = [draw.of(0, 1, 3, 4, 5, 7) for _ in range(n)]
    generator = draw.generator()

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    x, router, grad = (
        normal(sum(counts), features),
        normal(n, features),
        normal(sum(counts), features),
    )
    x[:, 0] = 1  # so that a router's first column is added to all logits
    if kind != "any" and n > 1:
        router[draw.rank(), 0] = -FAR_LOGIT if "none" in kind else FAR_LOGIT
    weights = [normal(features, features) for _ in range(n)]
    saw = (x @ router.T).argmax(1).bincount(minlength=n).tolist()
    rows = [0, *torch.tensor(counts).cumsum(0).tolist()]
    own = [slice(rows[r], rows[r + 1]) for r in range(n)]
    row = features * x.element_size()
    return Case(
        f"{join_numbers(counts)} tokens of {features} features, {dtype}; experts see {join_numbers(saw)}",
        [(x[s].clone(), router, weights[r], grad[s].clone()) for r, s in enumerate(own)],
        right=Reference(margin=1.0),
        facts={"bytes": [max(c * row, s * row, 8 * n) for c, s in zip(counts, saw, strict=True)]},
    )


def join_numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def max_exchange_bytes(case: Case, rank: int) -> int:
    """Return the maximum bytes that one exchange needs: own tokens, the expert's tokens, or the counts."""
    found: int = case.facts["bytes"][rank]
    return found


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_to_all",)),
        Calls(
            phase="forward",
            exactly=3,
            bytes_per_call=max_exchange_bytes,
            missing="Three exchanges are needed: counts, tokens out, tokens back.",
            why="Three exchanges are enough: counts, tokens out, tokens back.",
            large_advice="Send each token only to its expert, without padding and without its gate.",
        ),
        Calls(
            phase="backward",
            exactly=2,
            bytes_per_call=max_exchange_bytes,
            missing="Gradients go through both exchanges of the tokens in reverse.",
            why="Gradients go through both exchanges of the tokens in reverse.",
            large_advice="Send each gradient only to a rank that had its token.",
        ),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "enforce fail|[Oo]verflow|negative dimension|Invalid number|not enough memory",
            "Some of these counts were never written. Exchange them with all_to_all_single, one number for "
            "each rank, including experts without tokens: `bincount(minlength=world_size)`.",
        ),
        CrashAdvice(
            "",
            "The ranks disagree on how many rows they send to each other. Exchange the counts first, one "
            "number for each rank, including experts without tokens: `bincount(minlength=world_size)`.",
            applies_if_killed=True,
        ),
        CrashAdvice(
            "does not require grad",
            "A rank's result has no graph, so its backward makes no call. Did it go through both "
            "exchanges, even without rows? The expert's output for no rows has a graph, but a new tensor has "
            "none.",
        ),
    ),
    kind=Kind.MODULE,
    driver=route_tokens,
    reported=("result", "called", "tokens that its expert saw"),
    count=16,
)
