"""15.5 A loss over a cut vocabulary (25 min, ●●●●○, further)

- The loss of one token needs three numbers: the largest logit m of all words, the sum s of exp(logit - m),
  and the target's logit t. Through which of them does a gradient flow?
- For m, take amax of the detached logits, then call all_reduce with MAX. For s, pass the sum of exp(logits -
  m) over this rank's words through SumOverRanks. For t, use this rank's logit of the target if the target is
  in [first, first + own words), otherwise 0, and pass it through SumOverRanks. The loss is the mean of log(s)
  + m - t.
- index = (target - first).clamp(0, logits.shape[1] - 1); own = logits.gather(1, index[:, None])[:, 0];
  inside = (target >= first) & (target < first + logits.shape[1]); t = SumOverRanks.apply(torch.where(inside,
  own, 0))
"""

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks.cut import run_loss
from helpers.exercises.nb15_tensor_parallel.shared import FAILURE_ADVICE, part_advice

KINDS = ("around 0", "in the thousands", "far below 0", "one rank's far above the others'")


def case(draw: Draw) -> Case:
    n, tokens, kind, dtype = (
        draw.ranks,
        draw.whole(1, 6),
        draw.of(*KINDS),
        draw.dtype(torch.float32, torch.float64),
    )
    counts = [draw.whole(1, 5) for _ in range(n)]
    words, order = sum(counts), draw.rng.sample(range(n), n)  # each rank's block of words
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
    # this word is outside the range of the rank with the first words
    target[draw.whole(0, tokens - 1)] = words - 1
    leaf = logits.double().clone().requires_grad_()
    loss = cross_entropy(leaf, target)
    loss.backward()
    assert leaf.grad is not None
    y, gradient = loss.detach().to(dtype), leaf.grad.to(dtype)
    seen = {"autograd": "", "outside": "", "logits": "", "output": y}
    # `m`, `t` and the logarithm are added in any order. The rounding error of each is relative to the
    # size of a logit. The absolute error of their sum is the relative error of its exp.
    high = float(logits.abs().max())
    size = {"output": max(1.0, high), "gradient of logits": (1 + high / 100) / tokens}
    right = [{**seen, "gradient of logits": gradient[:, s], "in place": ""} for s in own]
    return Case(
        f"{plural(tokens, 'token')}, words {' + '.join(str(counts[b]) for b in order)}, {dtype}, {kind}",
        [(logits[:, s].contiguous(), target, s.start) for s in own],
        right=NamedParts(right, size, part_advice),
        facts={"bytes": 16 * tokens},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls(
            phase="forward",
            most=3,
            bytes_per_call="bytes",
            why="Three calls are enough: for the maximum, the sum and the target's logit.",
            large_advice="Sum only a few numbers per token, never logits.",
        ),
        Calls(
            phase="backward",
            exactly=0,
            why="Each rank already has everything that its logits' gradient needs.",
        ),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_loss,
    reported=("autograd", "outside", "in place", "logits", "pair"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
