"""20.2: a replica that copies the state of a replica ahead of it. Also the small model for 20.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def build_small_model(seed: int, kind: str) -> nn.Module:
    """Build a model. With kind "norm", the model also has buffers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "norm":
            return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def build_optimizer(model: nn.Module, kind: str) -> torch.optim.Optimizer:
    if kind == "AdamW":
        return torch.optim.AdamW(model.parameters(), lr=0.05)
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9 if kind == "momentum" else 0.0)


def run_backward(model: nn.Module, replica: int, step: int) -> None:
    """Compute the gradients on one replica's batch in one step. All batches are different."""
    made = torch.Generator().manual_seed(1000 * replica + step)
    x = torch.randn(8, 3, generator=made)
    model.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin()).backward()


def build_trained(rank: int, steps: int, model_kind: str, kind: str) -> tuple[Any, Any]:
    """Return the model and the optimizer of a replica after training `steps` steps alone."""
    model = build_small_model(7 if steps > 0 else 100 + rank, model_kind)
    optimizer = build_optimizer(model, kind)
    for step in range(steps):
        run_backward(model, 0, step)
        optimizer.step()
    model.zero_grad()
    for group in optimizer.param_groups:  # change the rate as a scheduler does
        group["lr"] *= 0.9 ** max(steps, 0)
    return model, optimizer


def copy_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return {name: plain tensor} of the complete state that a step depends on."""
    found: dict[str, Any] = {name: t.detach().clone() for name, t in model.state_dict().items()}
    found["the learning rate"] = torch.tensor(optimizer.param_groups[0]["lr"])
    for i, p in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        for name, value in optimizer.state.get(p, {}).items():
            if value is not None:
                found[f"{name} of parameter {i}"] = torch.as_tensor(value).detach().clone()
    return found


def run_rejoin(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    steps: list[int],
    model_kind: str,
    kind: str,
) -> dict[str, Any]:
    """Call the answer to bring this rank to the most advanced state, then train one more step."""
    model, optimizer = build_trained(rank, steps[rank], model_kind, kind)
    kept = list(model.parameters())
    step = answer(rank, world_size, list(steps), model, optimizer)
    found = copy_state(model, optimizer)
    same = all(a is b for a, b in zip(kept, model.parameters(), strict=True))
    run_backward(model, 0, 99)
    optimizer.step()
    after = torch.cat([p.detach().flatten() for p in model.parameters()])
    return {
        "returned": step if isinstance(step, int) else f"a {type(step).__name__}",
        "objects": same,
        "state": found,
        "after": after,
    }
