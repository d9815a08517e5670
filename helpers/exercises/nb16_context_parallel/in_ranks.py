"""What the ranks run around an answer of notebook 16: an attention over stretches, forward and backward.

Each returns plain values by name. The spans "forward" and "backward" show which call belongs to which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.ranks.inside import span


def run_merge(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    parts: dict[str, torch.Tensor],
    grads: tuple[torch.Tensor, torch.Tensor],
) -> dict[str, Any]:
    """Merge two parts; run backward from both results."""
    given = {name: x.clone().requires_grad_() for name, x in parts.items()}
    got = answer(*given.values())
    if not isinstance(got, tuple) or [type(x) for x in got] != [torch.Tensor, torch.Tensor]:
        return {"out": f"a {type(got).__name__}, not a pair of tensors"}
    found = {"out": got[0].detach().clone(), "lse": got[1].detach().clone()}
    pairs = zip(got, grads, strict=True)
    learns = [(x, grad) for x, grad in pairs if x.requires_grad and x.shape == grad.shape]
    if learns:
        torch.autograd.backward([x for x, _ in learns], [grad for _, grad in learns])
    return found | {f"gradient of {name}": x.grad for name, x in given.items()}


def run_pass_on(
    answer: Any, rank: int, world_size: int, x: torch.Tensor, grad: torch.Tensor
) -> dict[str, Any]:
    """Pass a tensor on by the answer, a function of autograd; run backward where there is one."""
    # what autograd hands to backward is seldom contiguous
    return _there_and_back(lambda own: answer.apply(own), {"x": x}, _other_strides(grad))


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


def _other_strides(x: torch.Tensor) -> torch.Tensor:
    """Give the same elements in another order in memory, where there are enough dimensions."""
    return x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x
