"""Run answers of notebook 17 inside the ranks: send tokens to experts, move a bias, combine gradients.

Each function returns plain values by name. A string describes a problem not visible in values; "" means none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import equal, nn

from helpers.exercises.shared.in_ranks.groups import watch_new_group
from helpers.exercises.shared.in_ranks.probe import (
    copy_of,
    grad_of,
    run_forward_and_backward,
    with_grads,
)


class Expert(nn.Module):
    """One layer with a tanh, built from its weight; its result is not contiguous."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.clone())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.weight @ tokens.T).T  # make rows that are not contiguous


def route_tokens(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    router: torch.Tensor,
    weight: torch.Tensor,
    grad: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer to send this rank's tokens through the experts, forward and backward."""
    expert, rows = Expert(weight), []
    expert.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    leaves = {"x": x, "router": router}
    found = run_forward_and_backward(
        lambda *own: answer(rank, world_size, *own, expert),
        leaves,
        {"output": grad},
        unused=not len(x),
    )
    return found and {
        "result": found.pop("result"),
        "tokens that its expert saw": sum(rows),
        "output": found.pop("output"),
        "called": "" if rows else "its expert was not called, so its weights have no gradient",
        "gradient of the router": found.pop("gradient of router", None),
        **found,
        "gradient of the expert": grad_of(expert.weight, not rows),
    }


def run_routing(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    logits: torch.Tensor,
    bias: torch.Tensor,
    k: int,
    grad: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer to choose k experts for each token; run backward from the weights.

    A token's experts may be returned in any order: they are sorted here together with their weights.
    """

    own_bias = bias.clone()

    def route(own: torch.Tensor) -> Any:
        got = answer(own, own_bias, k)
        if not (isinstance(got, tuple | list) and len(got) == 3):
            return got
        experts, weights, counts = got
        both = isinstance(experts, torch.Tensor) and isinstance(weights, torch.Tensor)
        if both and experts.dim() == 2 and experts.shape == weights.shape:
            experts, order = experts.sort(1)
            weights = weights.gather(1, order)
        return experts, weights, counts

    found = run_forward_and_backward(
        route,
        {"logits": logits},
        {"weights": grad},
        ("sorted experts", "weights", "counts"),
        wanted="(experts, weights, counts)",
        unused=not len(logits),
        may_have_no_graph=True,
    )
    if found and not equal(own_bias, bias):
        found["result"] = found["result"] or "`bias` has changed"
    return found


def run_update_bias(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    bias: torch.Tensor,
    counts: Sequence[torch.Tensor],
    speed: float,
) -> dict[str, Any] | None:
    """Call the answer to move the bias after a step of some microbatches."""
    own, parts = bias.clone(), [each.clone() for each in counts]
    got = answer(own, parts, speed)
    if got is None:
        return None
    same_counts = len(parts) == len(counts) and all(map(equal, parts, counts))
    changed = "" if same_counts else "`counts` has changed"
    return {
        "arguments": changed if equal(own, bias) else "`bias` has changed",
        "new bias": copy_of(got) if isinstance(got, torch.Tensor) else got,
    }


def run_moe_layer(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    experts: torch.Tensor,
    weights: torch.Tensor,
    up: torch.Tensor,
    down: torch.Tensor,
    matrix: torch.Tensor,
    grad: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer to send copies of this rank's tokens through the experts, forward and backward."""
    shared = Expert(matrix)
    found = run_forward_and_backward(
        lambda x, weights, up, down: answer(
            rank, world_size, x, experts.clone(), weights, up, down, shared
        ),
        {"x": x, "weights": weights, "up": up, "down": down},
        {"output": grad},
    )
    if found is None:
        return None
    for name, leaf in (("x", x), ("weights", weights)):
        key = f"gradient of {name}"
        # without rows, a missing gradient and an empty one are equivalent
        if not len(x) and found.get(key) is None:
            found[key] = torch.zeros_like(leaf)
    own = grad_of(shared.weight, not len(x))
    return {**found, "gradient of the shared expert": own}


def run_gradients(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    ep: int,
    shared: Sequence[torch.Tensor],
    experts: Sequence[torch.Tensor],
) -> dict[str, Any]:
    """Call the answer to combine gradients that are in parameters, as if backward had left them there.

    Its calls of `new_group` are compared across ranks.
    """
    grads = [*shared, *experts]
    parts = with_grads((torch.full_like(grad, float(rank)) for grad in grads), grads)
    names = [f"shared {i}" for i in range(len(shared))]
    names += [f"expert {i}" for i in range(len(experts))]
    with watch_new_group(rank, world_size):
        answer(rank, world_size, ep, parts[: len(shared)], parts[len(shared) :])
    named = dict(zip(names, parts, strict=True))
    moved = [name for name, p in named.items() if not bool((p == rank).all())]
    return {
        "weights": f"the weights of {moved[0]} have changed" if moved else "",
        **{name: grad_of(p) for name, p in named.items()},
    }
