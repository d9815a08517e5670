"""What one process computes where notebook 08's ranks compute together: the oracle of its checks.

Plain arithmetic on whole batches; no optimizer, no communication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from helpers.exercises.sgd_models import (
    Branching,
    Grads,
    backward,
    branching,
    classifier,
    grads,
    walk_branches,
    weights,
)

Samples = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Momentum:
    """The rule by which torch.optim.SGD changes weights: v = momentum v + g; w = w - lr v."""

    lr: float
    momentum: float = 0.0

    def step(self, model: torch.nn.Module, velocity: list[torch.Tensor], mean: Grads) -> None:
        for p, v, grad in zip(model.parameters(), velocity, mean.values(), strict=True):
            assert grad is not None
            v.mul_(self.momentum).add_(grad)
            p.data -= self.lr * v


def own_branch_grads(
    words: torch.Tensor, branches: Sequence[str], seed: int, dtype: torch.dtype
) -> Grads:
    """Give the gradients that one rank has after backward through its branches."""
    model: Branching = branching(seed, dtype)
    walk_branches(model, words, branches)
    return grads(model)


def mean_of(each: Sequence[Grads], shares: Sequence[float] | None = None) -> Grads:
    """Average gradients, a missing one taken as zero; None only where nobody has any."""
    shares = shares or [1 / len(each)] * len(each)
    mean: Grads = {}
    for name in each[0]:
        parts = [
            share * grad
            for share, one in zip(shares, each, strict=True)
            if (grad := one[name]) is not None
        ]
        mean[name] = torch.stack(parts).sum(0) if parts else None
    return mean


def batch_grads(x: torch.Tensor, y: torch.Tensor, seed: int) -> Grads:
    """Give the gradients of the mean loss over a batch."""
    model = classifier(seed)
    backward(model, x, y)
    return grads(model)


def trained(
    x: torch.Tensor, y: torch.Tensor, batch_size: int, steps: int, seed: int, rule: Momentum
) -> tuple[list[float], list[torch.Tensor]]:
    """Train one process on whole batches: the loss before, and the weights after, every step."""
    model, losses, after = classifier(seed), [], []
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        model.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        rule.step(model, velocity, grads(model))
        losses.append(loss.item())
        after.append(weights(model))
    return losses, after


def trained_locally(
    shards: Sequence[Samples], batch_size: int, every: int, seed: int, rule: Momentum
) -> tuple[list[list[torch.Tensor]], list[torch.Tensor]]:
    """Train one model for each shard, averaged every so many steps: weights after steps, at the end."""
    models = [classifier(seed) for _ in shards]
    velocities = [[torch.zeros_like(p) for p in m.parameters()] for m in models]
    after: list[list[torch.Tensor]] = [[] for _ in shards]
    for step in range(len(shards[0][0]) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        for rank, (model, velocity) in enumerate(zip(models, velocities, strict=True)):
            model.zero_grad()
            backward(model, shards[rank][0][own], shards[rank][1][own])
            rule.step(model, velocity, grads(model))
            after[rank].append(weights(model))
        if (step + 1) % every == 0:
            for copies in zip(*(m.parameters() for m in models), strict=True):
                mean = torch.stack([p.detach() for p in copies]).mean(0)
                for p in copies:
                    p.data = mean.clone()
    return after, [weights(model) for model in models]
