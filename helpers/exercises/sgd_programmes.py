"""What the ranks run around an answer of notebook 08: a model, its gradients, and who looked on.

Each gives back plain values: gradients by name, weights after each step, what was counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from helpers.exercises.lend import lend
from helpers.exercises.sgd_models import (
    backward,
    branching,
    classifier,
    grads,
    walk_branches,
    weights,
)


def average_branching(
    answer: Callable[[nn.Module], Any],
    rank: int,
    world_size: int,
    words: torch.Tensor,
    branches: Sequence[str],
    seed: int,
    double: bool,
) -> dict[str, Any]:
    """Make this rank's gradients through the branches that it takes, and let the answer average."""
    model = branching(seed, torch.float64 if double else torch.float32)
    walk_branches(model, words, branches)
    before = weights(model)
    answer(model)
    return {"grads": grads(model), "weights kept": before.equal(weights(model))}


def average_weighted(
    answer: Callable[[nn.Module, int], Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    seed: int,
) -> dict[str, Any]:
    """Make the gradients of this rank's samples, maybe none, and let the answer average."""
    model = classifier(seed)
    backward(model, x, y)
    before = weights(model)
    answer(model, len(x))
    return {"grads": grads(model), "weights kept": before.equal(weights(model))}


def accumulate(
    answer: Callable[[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]], Any],
    rank: int,
    world_size: int,
    steps: list[list[tuple[torch.Tensor, torch.Tensor]]],
    seed: int,
) -> dict[str, Any]:
    """Let the answer accumulate in several steps, the gradients of one left there for the next."""
    lend(answer, "average_gradients", _average)
    model = classifier(seed)
    before = weights(model)
    after, largest, backwards = [], [0], [0]
    model.register_forward_pre_hook(lambda _, given: largest.append(len(given[0])))
    next(model.parameters()).register_hook(lambda grad: backwards.append(1))
    for microbatches in steps:
        answer(model, microbatches)
        after.append(grads(model))
    return {
        "grads": after,
        "weights kept": before.equal(weights(model)),
        "largest": max(largest),
        "backwards": len(backwards) - 1,
    }


def train(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    batch_size: int,
    steps: int,
    seed: int,
    lr: float,
    momentum: float,
) -> dict[str, Any]:
    """Let the answer train a model that begins differently on each rank."""
    lend(answer, "average_gradients", _average)
    model = classifier(seed + rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    seen = _Onlooker(model, optimizer)
    losses = answer(rank, world_size, model, optimizer, x, y, batch_size, steps)
    return {
        "losses": losses,
        "before": seen.before,
        "weights": seen.after,
        "samples": seen.samples,
    }


def train_locally(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    batch_size: int,
    every: int,
    seed: int,
    lr: float,
    momentum: float,
) -> dict[str, Any]:
    """Let the answer train on this rank's own samples and average the weights now and then."""
    model = classifier(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    seen = _Onlooker(model, optimizer)
    answer(rank, world_size, model, optimizer, x, y, batch_size, every)
    return {"weights": seen.after, "before": seen.before, "at the end": weights(model)}


def serve_parameters(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    batch_size: int,
    steps: int,
    seed: int,
    lr: float,
    momentum: float,
) -> dict[str, Any]:
    """Let the answer train with rank 0 as the server; every rank begins with other weights."""
    model = classifier(seed + rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    seen = _Onlooker(model, optimizer)
    answer(rank, world_size, model, optimizer, x, y, batch_size, steps)
    return {"weights": seen.after, "at the end": weights(model)}


class _Onlooker:
    """Notes the weights before and after every step, and how many samples were learned from."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.before: list[torch.Tensor] = []
        self.after: list[torch.Tensor] = []
        self.samples = 0
        self.model = model
        model.register_forward_pre_hook(self._forward)
        optimizer.register_step_pre_hook(lambda *_: self.before.append(weights(model)))
        optimizer.register_step_post_hook(lambda *_: self.after.append(weights(model)))

    def _forward(self, _: nn.Module, given: tuple[Any, ...]) -> None:
        if torch.is_grad_enabled():
            self.samples += len(given[0])


def _average(model: nn.Module, *_: Any) -> None:
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
