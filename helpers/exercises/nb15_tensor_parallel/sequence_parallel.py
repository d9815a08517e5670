"""15.7 Sequence parallelism (12 min, ●●●○○)

- Two functions, each the other one's backward. And the scale of the norm: which tokens has a rank's copy
  of it seen?
- GatherTokens: gather there, scatter_sum back. ScatterSum: scatter_sum there, gather back. Norm before
  you gather; mask and x after the sum has been scattered. Each rank's tokens give one summand of the
  scale's gradient: let the norm read CopyToRanks.apply(scale).
- own = rms_norm(x, scale.shape, CopyToRanks.apply(scale)); tokens = GatherTokens.apply(own); hidden =
  silu(linear(tokens, gate)) * linear(tokens, up); return x + mask * ScatterSum.apply(linear(hidden, down))
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import linear, silu

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks import run_sequence
from helpers.exercises.nb15_tensor_parallel.shared import ENDINGS, by_name, there_and_back, unequal
from helpers.trace.events import Trace
from helpers.trace.mismatch import at
from helpers.views.plain import plural
from helpers.views.traffic_ledger import calls_by_phase

Weights = Sequence[torch.Tensor]

BY_APPLY = (
    "A plain call of torch.distributed, such as those in `gather` and `scatter_sum`, is unknown to autograd, "
    "and torch says that the gradient may silently be wrong. Let `GatherTokens.apply(...)` and "
    "`ScatterSum.apply(...)` make them."
)
BEHIND = (
    "Sums that need a gradient belong in `ScatterSum.apply(...)`: of a call behind its back (`.data`, "
    "`.detach()`, `no_grad`) autograd knows nothing."
)


def case(draw: Draw) -> Case:
    n, features = draw.ranks, draw.of(5, 7)
    # no weight, not even gate beside up, and no hidden elements are as large as all tokens
    counts, own_time, batch = unequal(draw, 2), draw.whole(4, 5), draw.whole(1, 2)
    dtype, generator = draw.dtype(torch.float32, torch.float64), draw.generator()

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    x, grad = (normal(n * own_time, batch, features) for _ in range(2))
    mask = (normal(*x.shape) > 0) * torch.full((), 2.0, dtype=dtype)
    scale, gate, up = normal(features), normal(sum(counts), features), normal(sum(counts), features)
    down = normal(features, sum(counts))
    weights = [
        [part.contiguous() for part in parts]
        for parts in zip(gate.split(counts), up.split(counts), down.split(counts, 1), strict=True)
    ]
    own = [
        {"x": x.chunk(n)[r], "scale": scale, **dict(zip(("gate", "up", "down"), w, strict=True))}
        for r, w in enumerate(weights)
    ]

    def ranks(block: Callable[..., torch.Tensor]) -> list[Parts]:
        """Give each rank's part of a block; as the scale's gradient, what the rank's own tokens say."""
        return cut(block, x, scale, weights, mask, grad)

    right = ranks(summed)
    total = sum(each["gradient of scale"] for each in right)
    [each["gradient of scale"] for each in right]
    before = {"autograd": "", "outside": ""}
    parts = by_name(
        [{**before, **each, "gradient of scale": total, "in place": "", "held": ""} for each in right],
        max(largest(*right), largest(total)) * 4,
        {"autograd": BY_APPLY, "outside": BEHIND},
    )  # fmt: skip

    def whole(words: str, block: Callable[..., torch.Tensor]) -> Mistake:
        return parts.mistake(words, lambda: [{"output": each["output"]} for each in ranks(block)])

    def learnt(words: str, block: Callable[..., torch.Tensor]) -> Mistake:
        return parts.mistake(words, lambda: [first_gradients(each) for each in ranks(block)])

    [each["output"] for each in right]
    x.chunk(n)
    return Case(
        f"{plural(own_time, 'token')} a rank, hidden elements {' + '.join(map(str, counts))}, {dtype}",
        [(grad.chunk(n)[r], each, mask.chunk(n)[r]) for r, each in enumerate(own)],
        right=parts,
        facts={"own": grad.nbytes // n, "whole": grad.nbytes, "scale": scale.nbytes},
    )


def cut(
    block: Callable[..., torch.Tensor],
    x: torch.Tensor,
    scale: torch.Tensor,
    weights: Sequence[Weights],
    mask: torch.Tensor,
    grad: torch.Tensor,
) -> list[Parts]:
    """Run a block there and back in one process; give each rank its part of what came of it."""
    n = len(weights)
    leaves: dict[str, torch.Tensor | None] = {"x": x}
    leaves |= {f"scale {r}": scale for r in range(n)}
    for r, own in enumerate(weights):
        leaves |= {f"{name} {r}": w for name, w in zip(("gate", "up", "down"), own, strict=True)}

    def dense(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        tri = [rest[n + 3 * r : n + 3 * r + 3] for r in range(n)]
        return block(x, rest[:n], tri, mask)

    there = there_and_back(dense, leaves, grad)
    names = ("scale", "gate", "up", "down")
    return [
        {
            "output": there["output"].chunk(n)[r],
            "gradient of x": there["gradient of x"].chunk(n)[r],
            **{f"gradient of {name}": there[f"gradient of {name} {r}"] for name in names},
        }
        for r in range(n)
    ]


def first_gradients(parts: Parts) -> Parts:
    return {name: parts[name] for name in ("gradient of x", "gradient of gate")}


# --- the block, and what mistakes make of it: x of all tokens, a scale and weights for each rank -----


def norm(x: torch.Tensor, scales: Weights) -> torch.Tensor:
    """Norm each rank's tokens with its own copy of the scale."""
    size = (x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).rsqrt()
    return torch.cat([p * s for p, s in zip((x * size).chunk(len(scales)), scales, strict=True)])


def mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Give one rank's summand."""
    return linear(silu(linear(x, gate)) * linear(x, up), down)


def summed(
    x: torch.Tensor, scales: Weights, weights: Sequence[Weights], mask: torch.Tensor
) -> torch.Tensor:
    """The block as it is right."""
    tokens = norm(x, scales)
    return x + mask * sum(mlp(tokens, *own) for own in weights)


def swapped(x: torch.Tensor, scales: Weights, weights: Sequence[Weights], mask: Any) -> Any:
    return summed(x, scales, [(up, gate, down) for gate, up, down in weights], mask)


# --- how the ranks talk -----------------------------------------------------------------------------

WANTED = {
    "forward": {"all_gather": "own", "reduce_scatter": "whole"},
    "backward": {"all_gather": "own", "reduce_scatter": "whole", "all_reduce": "scale"},
}
"""Each call of a phase, and the fact of the case that says how many bytes it hands in."""
WHY = {
    ("forward", "all_gather"): "gate and up read the same tokens, and each rank hands in its own",
    ("forward", "reduce_scatter"): "each rank needs the sum for its own tokens",
    ("backward", "all_gather"): "each rank hands in the gradient of its own tokens of the sum",
    ("backward", "reduce_scatter"): "each rank needs the sum of the gradients of its own tokens",
    (
        "backward",
        "all_reduce",
    ): "only the gradient of the scale is summed whole, activations never are",
}
NONE = "activations are never summed whole"


def replaced(trace: Trace, case: Case) -> str:
    """Say which phase makes other calls than an all_gather and a reduce_scatter, or larger ones."""
    for rank in range(case.world_size):
        for phase, calls in calls_by_phase(trace, rank).items():
            made, wanted = Counter(call.op for call in calls), WANTED.get(phase, {})
            for call in calls:
                most = case.facts[wanted[call.op]] if call.op in wanted else 0
                if call.nbytes > most:
                    enough = f"{most:,} are enough" if most else "none is needed there"
                    return (
                        f"rank {rank} hands {call.nbytes:,} bytes to {call.call}{at(call)} in {phase}; "
                        f"{enough}: {WHY.get((phase, call.op), NONE)}."
                    )
            for op in wanted:
                if made[op] != 1:
                    return (
                        f"rank {rank} calls {op} {plural(made[op], 'time')} in {phase}; once is right: "
                        f"{WHY[phase, op]}."
                    )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather", "reduce_scatter", "all_reduce")),
        Holds(
            replaced, "all_gather and reduce_scatter once each way; only the scale's sum is whole"
        ),
        AwaitedByHand(),
    ),
    failed=(
        Failed(
            "returned an invalid gradient|must match the size|size of tensor",
            "x and mask are of this rank's tokens, and so is what scatter_sum gives; gate and up read all "
            "tokens. Each function's backward undoes the change of size that its forward made.",
        ),
        Failed(
            "A view was created in no_grad mode",
            "`gather` is unknown to autograd, which cannot go back through it: call "
            "`GatherTokens.apply(...)`.",
        ),
        *ENDINGS,
    ),
    kind=Kind.MODULE,
    programme=run_sequence,
    reported=("autograd", "outside", "in place", "held", "pair"),
    sizes=(2, 3, 4, 6),
    count=18,
)
