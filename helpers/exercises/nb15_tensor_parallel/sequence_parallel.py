"""15.7 Sequence parallelism (12 min, ●●●○○)

- Each of the two functions is the backward of the other. Which tokens contribute to the gradient of the
  norm's scale on one rank, and which tokens should?
- GatherTokens uses gather in forward and scatter_sum in backward. ScatterSum uses scatter_sum in forward and
  gather in backward. Apply the norm before gathering. After scattering the sum, multiply by mask and add x.
  Each rank's tokens give one term of the scale's gradient, so let the norm read CopyToRanks.apply(scale).
- own = rms_norm(x, scale.shape, CopyToRanks.apply(scale)); tokens = GatherTokens.apply(own); hidden =
  silu(linear(tokens, gate)) * linear(tokens, up); return x + mask * ScatterSum.apply(linear(hidden, down))
"""

from collections import Counter
from dataclasses import replace

import torch

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks.cut import run_sequence
from helpers.exercises.nb15_tensor_parallel.shared import (
    FAILURE_ADVICE,
    LAYER_REFERENCE,
    draw_unequal_counts,
)
from helpers.views.traffic_ledger import calls_by_phase


def case(draw: Draw) -> Case:
    n, features = draw.ranks, draw.of(5, 7)
    # weights (even gate and up together) and hidden elements differ in size from all tokens
    counts, own_time, batch = draw_unequal_counts(draw, 2), draw.whole(4, 5), draw.whole(1, 2)
    dtype, generator = draw.dtype(torch.float32, torch.float64), draw.generator()

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    x, grad = (normal(n * own_time, batch, features) for _ in range(2))
    mask = (normal(*x.shape) > 0) * torch.full((), 2.0, dtype=dtype)
    scale, gate, up = normal(features), normal(sum(counts), features), normal(sum(counts), features)
    whole = {"x": x, "scale": scale, "gate": gate, "up": up, "down": normal(features, sum(counts))}
    cut = [split_tensor(name, tensor, counts) for name, tensor in whole.items()]
    own = [dict(zip(whole, parts, strict=True)) for parts in zip(*cut, strict=True)]
    return Case(
        f"{plural(own_time, 'token')} a rank, hidden elements {' + '.join(map(str, counts))}, {dtype}",
        list(zip(grad.chunk(n), own, mask.chunk(n), strict=True)),
        right=replace(LAYER_REFERENCE, margin=4.0),
        facts={"own": grad.nbytes // n, "whole": grad.nbytes, "scale": scale.nbytes},
    )


def split_tensor(name: str, tensor: torch.Tensor, counts: list[int]) -> list[torch.Tensor]:
    """Split a tensor as the block does: by tokens, by hidden elements, or not at all."""
    if name == "scale":
        return [tensor] * len(counts)
    if name == "x":
        return list(tensor.chunk(len(counts)))
    return [part.contiguous() for part in tensor.split(counts, int(name == "down"))]


# --- the ranks' calls -----------------------------------------------------------------------------

PHASE_CALLS = {
    "forward": {"all_gather": "own", "reduce_scatter": "whole"},
    "backward": {"all_gather": "own", "reduce_scatter": "whole", "all_reduce": "scale"},
}
"""The calls of each phase, each with the name of the case's fact that gives the bytes passed by a rank."""
CALL_REASONS = {
    (
        "forward",
        "all_gather",
    ): "gate and up read the same tokens, and each rank sends only its tokens",
    ("forward", "reduce_scatter"): "each rank needs only the sum for its tokens",
    ("backward", "all_gather"): "each rank sends the sum's gradient for its tokens",
    ("backward", "reduce_scatter"): "each rank needs only the summed gradients of its tokens",
    (
        "backward",
        "all_reduce",
    ): "only the scale's gradient is summed whole, not activations",
}
NO_SUM_REASON = "activations are never summed whole"


def find_wrong_calls(trace: Trace, case: Case) -> str:
    """Return the phase with calls other than an all_gather and a reduce_scatter, or with larger calls."""
    for rank in range(case.world_size):
        for phase, calls in calls_by_phase(trace, rank).items():
            made, wanted = Counter(call.op for call in calls), PHASE_CALLS.get(phase, {})
            for call in calls:
                most = case.facts[wanted[call.op]] if call.op in wanted else 0
                if call.nbytes > most:
                    enough = f"{most:,} are enough" if most else "this call isn't needed"
                    return (
                        f"rank {rank} passes {call.nbytes:,} bytes to {call.call}{at(call)} in {phase}, "
                        f"but {enough}: {CALL_REASONS.get((phase, call.op), NO_SUM_REASON)}."
                    )
            for op in wanted:
                if made[op] != 1:
                    return (
                        f"rank {rank} calls {op} {plural(made[op], 'time')} in {phase}; expected: once, "
                        f"because {CALL_REASONS[phase, op]}."
                    )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather", "reduce_scatter", "all_reduce")),
        Predicate(
            find_wrong_calls,
            "all_gather and reduce_scatter once each way; only the scale's sum is whole",
        ),
        WaitsForAll(),
    ),
    failed=FAILURE_ADVICE,
    kind=Kind.MODULE,
    driver=run_sequence,
    reported=("autograd", "outside", "in place", "held", "pair"),
    sizes=(2, 3, 4, 6),
    count=18,
)
