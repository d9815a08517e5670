"""17.3 A loss for even loads (15 min, ●●●○○, further)

- The loss is a sum of products of two numbers for each expert. Which of these must be known over all ranks
  before they are multiplied, and through which does the gradient flow?
- Count the tokens that choose each expert, add up the probabilities of each expert, and sum both over the
  ranks in one all_reduce. The count of all tokens is the sum of the counts. Gradients flow through this
  rank's own probabilities only.
- p = logits.softmax(1); both = stack([argmax bincount, p.sum(0).detach()]); all_reduce(both); n =
  both[0].sum(); others = both[1] - p.sum(0).detach(); return E * (both[0] / n * (others + p.sum(0)) /
  n).sum().
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb17_expert_parallel.in_ranks import run_balance

OWN = "This is the loss of the rank's own tokens: loads have to be even over all ranks, not on each of them."


def case(draw: Draw) -> Case:
    n, experts = draw.ranks, draw.whole(2, 5)
    counts = [draw.of(1, 2, 4, 5, 0) for _ in range(n)]
    counts[draw.rank()] = 3
    dtype = draw.dtype(torch.float64, torch.float32)
    own = [torch.randn(c, experts, generator=draw.generator(), dtype=dtype) for c in counts]
    if draw.of(True, False):
        for rank, logits in enumerate(own):
            logits[:, rank % experts] += 2
    total, grads = loss_of(torch.cat(own))
    each = list(grads.split(counts))

    def parts(loss: Any, of: list[torch.Tensor] | None = None) -> list[dict[str, Any]]:
        losses = loss if isinstance(loss, list) else [loss] * n
        return [
            {"loss": a} if of is None else {"loss": a, "gradient of logits": b}
            for a, b in zip(losses, of or each, strict=True)
        ]

    # counts divided by counts are float32 in torch, whatever the dtype of the logits
    room = max(1.0, float(total)) * (1e3 if dtype == torch.float64 else 1.0)
    right = ByName([{"result": "", **one} for one in parts(total, each)], scale=room)
    [loss_of(logits)[0] if len(logits) else total * 0 for logits in own]
    [loss_of(logits)[1] if len(logits) else logits for logits in own]
    shares = [(f, p) for f, p in map(factors, own)]
    [torch.stack([pair[i] for pair in shares]).mean(0) for i in range(2)]
    experts * (torch.cat(own).softmax(1).mean(0) ** 2).sum()
    return Case(
        f"{', '.join(map(str, counts))} tokens, {experts} experts, {dtype}",
        [(logits,) for logits in own],
        right=right,
        facts={"bytes": (2 * experts + 1) * 8},
    )


def factors(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Give each expert's share of the tokens, and its mean probability; zeros for no tokens."""
    count = logits.shape[1]
    if not len(logits):
        return logits.new_zeros(count), logits.new_zeros(count)
    share = logits.argmax(1).bincount(minlength=count).to(logits.dtype) / len(logits)
    return share, logits.softmax(1).mean(0)


def loss_of(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Give the loss of some tokens (Fedus, Zoph and Shazeer, 2022, equation 4), and its gradient."""
    logits = logits.clone().requires_grad_()
    share, mean = factors(logits)
    loss = logits.shape[1] * (share * mean).sum()
    (gradient,) = torch.autograd.grad(loss, logits)
    return loss.detach(), gradient


EXERCISE = Exercise(
    case,
    (
        CallsIn(
            "forward",
            1,
            most_bytes="bytes",
            missing="A rank knows its own tokens only.",
            why="One all_reduce carries counts and probabilities together.",
            why_large="Two numbers for each expert are enough.",
        ),
        CallsIn("backward", 0, why="Each rank's own gradient is complete without the others."),
        AwaitedByHand(),
    ),
    kind=Kind.MODULE,
    programme=run_balance,
    reported=("result",),
    sizes=(2, 3, 4),
    count=16,
)
