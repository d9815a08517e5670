"""Run answers of 12.5 inside the ranks, on shards as in `fully_shard`, and record Newton-Schulz calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from helpers.ranks.rank_context import span


class MuonInputs(NamedTuple):
    """This rank's rows of some matrices, and of their gradients in each step."""

    weights: Sequence[torch.Tensor]
    grads: Sequence[Sequence[torch.Tensor]]
    lr: float
    momentum: float


def newton_schulz(matrix: torch.Tensor) -> torch.Tensor:
    """Bring the singular values of a matrix near 1, by five steps of K. Jordan's iteration (Muon, 2024)."""
    if matrix.shape[0] > matrix.shape[1]:
        return newton_schulz(matrix.T).T.contiguous()
    x: torch.Tensor = matrix / (matrix.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x - 4.775 * gram @ x + 2.0315 * gram @ gram @ x
    return x


def run_muon(
    answer: Callable[..., Any], rank: int, world_size: int, inputs: MuonInputs
) -> dict[str, Any]:
    """Take steps with the answer, each with new gradients; return shards and orthogonalized shapes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    weights, grads, lr, momentum = inputs
    mesh = init_device_mesh("cpu", (world_size,))

    def as_sharded(rows: torch.Tensor) -> torch.Tensor:
        return DTensor.from_local(rows.clone(), mesh, [Shard(0)], run_check=False)

    params = [nn.Parameter(as_sharded(w)) for w in weights]
    momenta = [torch.zeros_like(w) for w in weights]
    shapes: list[list[int]] = []

    def orthogonalize(matrix: torch.Tensor) -> torch.Tensor:
        shapes.append(list(matrix.shape))
        with span("orthogonalize"):  # the check compares its start with the gathers' starts
            return newton_schulz(matrix)

    for step, each in enumerate(grads, 1):
        for p, g in zip(params, each, strict=True):
            p.grad = as_sharded(g)
        with span(f"step {step}"):
            answer(list(params), list(momenta), lr, momentum, orthogonalize)
    found: dict[str, Any] = {f"momenta[{i}]": m.clone() for i, m in enumerate(momenta)}
    found |= {f"params[{i}]": p.detach().to_local().clone() for i, p in enumerate(params)}  # type: ignore[attr-defined]
    return found | {"matrices passed to orthogonalize": sorted(shapes)}
