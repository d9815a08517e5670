"""15.5 A loss over a cut vocabulary (25 min, ●●●●○, further)

- The loss of one token needs three numbers: the largest logit m of all words, the sum s of exp(logit - m),
  and the target's logit t. Which of them does a gradient flow through?
- m: amax of the detached logits, all_reduce with MAX. s: sum of exp(own logits - m), through SumOverRanks. t:
  own logit where the target lies in [first, first + own words), else 0, through SumOverRanks. The loss is the
  mean of log(s) + m - t.
- index = (target - first).clamp(0, logits.shape[1] - 1); own = logits.gather(1, index[:, None])[:, 0];
  inside = (target >= first) & (target < first + logits.shape[1]); t = SumOverRanks.apply(torch.where(inside,
  own, 0))
"""

from collections.abc import Sequence

import torch
from torch.nn.functional import cross_entropy, one_hot

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks import run_loss
from helpers.exercises.nb15_tensor_parallel.shared import ENDINGS, by_name
from helpers.views.plain import plural

KINDS = ("around 0", "in the thousands", "far below 0", "one rank's far above the others'")


def case(draw: Draw) -> Case:
    n, tokens, kind, dtype = (
        draw.ranks,
        draw.whole(1, 6),
        draw.of(*KINDS),
        draw.dtype(torch.float32, torch.float64),
    )
    counts = [draw.whole(1, 5) for _ in range(n)]
    words, order = sum(counts), draw.rng.sample(range(n), n)  # which block of words a rank has
    logits = 3 * torch.randn(tokens, words, generator=draw.generator(), dtype=dtype)
    firsts = [sum(counts[:block]) for block in order]
    own = [slice(first, first + counts[block]) for first, block in zip(firsts, order, strict=True)]
    if kind == "in the thousands":
        logits *= 700
    logits[:, own[draw.rank()] if kind == KINDS[3] else slice(None)] += {
        KINDS[2]: -5000,
        KINDS[3]: 1000,
    }.get(kind, 0)
    target = torch.tensor([draw.whole(0, words - 1) for _ in range(tokens)])
    target[draw.whole(0, tokens - 1)] = words - 1  # out of bounds for the rank with the first words
    leaf = logits.double().clone().requires_grad_()
    loss = cross_entropy(leaf, target)
    loss.backward()
    assert leaf.grad is not None
    y, gradient, _hot = (
        loss.detach().to(dtype),
        leaf.grad.to(dtype),
        one_hot(target, words).to(dtype),
    )
    seen = {"autograd": "", "outside": "", "logits": "", "output": y}
    size = {"output": max(1.0, 0.2 * float(logits.abs().max())), "gradient of logits": 1 / tokens}
    parts = by_name(
        [{**seen, "gradient of logits": gradient[:, s], "in place": ""} for s in own], size
    )

    def gradients(whole: torch.Tensor) -> list[dict[str, torch.Tensor]]:
        return [{"gradient of logits": whole[:, s].to(dtype)} for s in own]

    return Case(
        f"{plural(tokens, 'token')}, words {' + '.join(str(counts[b]) for b in order)}, {dtype}, {kind}",
        [(logits[:, s].contiguous(), target, s.start) for s in own],
        right=parts,
        facts={"bytes": 16 * tokens},
    )


COMPLETE = (
    "The loss is the same on every rank, so the gradient of a sum over ranks arrives complete. Sum by "
    "SumOverRanks.apply, whose backward hands it on."
)


def outputs(
    logits: torch.Tensor, target: torch.Tensor, own: Sequence[slice]
) -> list[list[dict[str, torch.Tensor | None]]]:
    """Give what mistakes make of the loss: for each of them, what each rank returns."""
    n, rows = len(own), torch.arange(len(target))
    m, zero = logits.amax(1), torch.zeros(len(target), dtype=logits.dtype)
    tops = [logits[:, s].amax(1) for s in own]
    inside = [(target >= s.start) & (target < s.stop) for s in own]
    edge = [logits[rows, target.clamp(s.start, s.stop - 1)] for s in own]
    t_own = [torch.where(i, e, 0) for i, e in zip(inside, edge, strict=True)]
    t = sum(t_own, zero)

    def of(m: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> dict[str, torch.Tensor | None]:
        return {"output": (s.log() + m - t).mean()}

    def sums(by: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [(logits[:, s] - one[:, None]).exp().sum(1) for s, one in zip(own, by, strict=True)]

    s_own, begun = sums([m] * n), m.clamp(min=0)
    s = sum(s_own, zero)
    return [
        [of(begun, sum(sums([begun] * n), zero), t)] * n,
        [of(zero, sum(sums([zero] * n), zero), t)] * n,
        [of(top, sum(sums(tops), zero), t) for top in tops],
        [of(m, one, t) for one in s_own],
        [of(m, s, one) for one in t_own],
        [of(zero, s, t)] * n,
        [of(m, s, sum(edge, zero))] * n,
    ]


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        CallsIn(
            "forward",
            3,
            at_most=True,
            most_bytes="bytes",
            why="The maximum, the sum and the target's logit: three calls.",
            why_large="Only a few numbers a token travel, never logits.",
        ),
        CallsIn("backward", 0, why="Each rank has what the gradient of its own logits needs."),
        AwaitedByHand(),
    ),
    failed=(
        Failed("leaf Variable", "Work on a copy: `logits - m[:, None]`, not `logits -= ...`."),
        Failed(
            "out of bounds|out of range",
            "On most ranks the target is another rank's word: `own = (target >= first) & (target < first + "
            "logits.shape[1])`, then clamp the index and put 0 where it is not own.",
        ),
        *ENDINGS,
    ),
    kind=Kind.MODULE,
    programme=run_loss,
    reported=("autograd", "outside", "in place", "logits", "pair"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
