"""What the ranks run around an answer of notebook 17: an attention over stretches, there and back.

Each gives back plain values by name. The spans "forward" and "backward" tell which call belongs to which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.ranks.inside import span


def run_pass_on(
    answer: Any, rank: int, world_size: int, x: torch.Tensor, grad: torch.Tensor
) -> dict[str, Any]:
    """Pass a tensor on by the answer, a function of autograd; run backward where there is one."""
    return _there_and_back(lambda own: answer.apply(own), {"x": x}, grad)


def run_attention(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    grad: torch.Tensor,
    *more: Any,
) -> dict[str, Any]:
    """Let the answer attend with this rank's queries, keys and values; run backward."""
    return _there_and_back(lambda *own: answer(*own, *more), {"q": q, "k": k, "v": v}, grad)


def _there_and_back(
    forward: Callable[..., Any], tensors: dict[str, torch.Tensor], grad: torch.Tensor
) -> dict[str, Any]:
    given = {name: x.clone().requires_grad_(x.is_floating_point()) for name, x in tensors.items()}
    with span("forward"):
        output = forward(*given.values())
    if not isinstance(output, torch.Tensor):
        return {"output": f"a {type(output).__name__}, no tensor"}
    found = {"output": output.detach().clone()}
    if output.shape == grad.shape and any(x.requires_grad for x in given.values()):
        with span("backward"):
            output.backward(grad)
    return found | {f"gradient of {name}": x.grad for name, x in given.items()}
