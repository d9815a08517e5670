"""What the ranks run around an answer of notebook 17: tokens and their experts, losses and gradients of them.

Each returns plain values by name. A text describes what no value shows; "" is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import equal, nn

from helpers.exercises.shared.in_ranks.groups import watch_new_group
from helpers.ranks.inside import span


class Expert(nn.Module):
    """One layer with a tanh, made from its weight; its result is not contiguous."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.clone())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.weight @ tokens.T).T  # rows that do not lie one after the other


def route_tokens(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    router: torch.Tensor,
    weight: torch.Tensor,
    grad: torch.Tensor,
) -> dict[str, Any] | None:
    """Let the answer send this rank's tokens through the experts, forward and backward."""
    x, router = x.clone().requires_grad_(), router.clone().requires_grad_()
    expert, rows = Expert(weight), []
    expert.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    with span("forward"):
        output = answer(rank, world_size, x, router, expert)
    if output is None:
        return None
    if not isinstance(output, torch.Tensor):
        return {"result": f"a {type(output).__name__} came back, not a tensor"}
    kept = output.detach().clone()
    if output.shape == grad.shape:
        with span("backward"):
            output.backward(grad)
    return {
        "result": "",
        "tokens that its expert saw": sum(rows),
        "output": kept,
        "called": "" if rows else "its expert was not called, and its weights have no gradient",
        "gradient of the router": _grad(router, not len(x)),
        "gradient of x": _grad(x, not len(x)),
        "gradient of the expert": _grad(expert.weight, not rows),
    }


def _grad(leaf: torch.Tensor, unused: bool) -> torch.Tensor | None:
    """Copy a gradient; where nothing went through, none is as good as zeros."""
    if leaf.grad is None:
        return torch.zeros_like(leaf).detach() if unused else None
    return leaf.grad.clone()


def run_top_two(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    logits: torch.Tensor,
    capacity: int,
    grad: torch.Tensor,
) -> dict[str, Any] | None:
    """Let the answer choose two experts for each token; run backward from the gates."""
    leaf = logits.clone().requires_grad_()
    got = answer(leaf, capacity)
    if got is None:
        return None
    if not isinstance(got, (tuple, list)) or len(got) != 3:
        return {"result": f"a {type(got).__name__} came back, not (experts, gates, turned away)"}
    experts, gates, turned_away = got
    is_tensor = isinstance(gates, torch.Tensor)
    if is_tensor and gates.requires_grad and gates.shape == grad.shape:
        gates.backward(grad)
    same = equal(logits, leaf.detach())
    return {
        "result": "" if same else "the logits that it was given have changed",
        "experts": experts,
        "gates": gates.detach() if is_tensor else gates,
        "turned away": turned_away,
        "gradient of logits": None if leaf.grad is None else leaf.grad.clone(),
    }


def run_balance(
    answer: Callable[..., Any], rank: int, world_size: int, logits: torch.Tensor
) -> dict[str, Any]:
    """Let the answer compute the loss of all ranks' tokens from its own logits, and run backward."""
    logits = logits.clone().requires_grad_()
    before = logits.detach().clone()
    with span("forward"):
        loss = answer(logits)
    if not isinstance(loss, torch.Tensor) or loss.dim():
        what = f"of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else "no tensor"
        return {"result": f"what came back is a {type(loss).__name__}, {what}"}
    kept = loss.detach().clone()
    if loss.requires_grad:
        with span("backward"):
            loss.backward()
    same = equal(before, logits.detach())
    return {
        "result": "" if same else "the logits that it was given have changed",
        "loss": kept,
        "gradient of logits": _grad(logits, not len(logits)),
    }


def run_gradients(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    ep: int,
    shared: Sequence[torch.Tensor],
    experts: Sequence[torch.Tensor],
) -> dict[str, Any]:
    """Let the answer combine gradients that are in parameters as if backward had left them there;
    its calls of `new_group` are compared across ranks.
    """
    made = {
        f"{kind} {i}": nn.Parameter(torch.full_like(grad, float(rank)))
        for kind, grads in (("shared", shared), ("expert", experts))
        for i, grad in enumerate(grads)
    }
    for p, grad in zip(made.values(), (*shared, *experts), strict=True):
        p.grad = grad.clone()
    parts = list(made.values())
    with watch_new_group(rank, world_size):
        answer(rank, world_size, ep, parts[: len(shared)], parts[len(shared) :])
    moved = [name for name, p in made.items() if not bool((p == rank).all())]
    return {
        "weights": f"the weights of {moved[0]} have changed" if moved else "",
        **{name: None if p.grad is None else p.grad.clone() for name, p in made.items()},
    }
