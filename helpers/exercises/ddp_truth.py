"""What torch's DistributedDataParallel does to its replicas, computed in one process, without it.

    buffers of replica 0 to all -> each replica: forward, backward -> mean gradient -> each steps

The oracle of notebook 09's checks; a test compares it with the real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from helpers.exercises.ddp_models import Route, assorted, buffers, loss_of
from helpers.exercises.sgd_models import Grads, grads, weights
from helpers.exercises.sgd_truth import Momentum, mean_of


@dataclass(frozen=True)
class Replicas:
    """What must hold on the ranks: the first step's gradients, weights after steps, last buffers.

    own[r]: the gradients of rank r in the first step before they are averaged.
    """

    own: tuple[Grads, ...]
    mean: Grads
    after: tuple[torch.Tensor, ...]
    buffers: tuple[dict[str, torch.Tensor], ...]


def train_replicas(
    words: Sequence[torch.Tensor], routes: Sequence[Route], seed: int, spare: bool, rule: Momentum
) -> Replicas:
    """Train one replica for each rank; words[r] holds a row for each step of rank r."""
    models = [assorted(seed, spare) for _ in words]
    velocities = [[torch.zeros_like(p) for p in model.parameters()] for model in models]
    first: tuple[Grads, ...] = ()
    after = []
    for step in range(len(words[0])):
        for model in models:
            model.zero_grad()
            for own, first_rank in zip(model.buffers(), models[0].buffers(), strict=True):
                own.copy_(first_rank)
        for model, mine, route in zip(models, words, routes, strict=True):
            loss_of(model, mine[step], route).backward()
        each = tuple(grads(model) for model in models)
        first = first or each
        mean = mean_of(each)
        for model, velocity in zip(models, velocities, strict=True):
            rule.step(model, velocity, _filled(mean, model))
        after.append(weights(models[0]))
    return Replicas(first, mean_of(first), tuple(after), tuple(buffers(m) for m in models))


def _filled(mean: Grads, model: torch.nn.Module) -> Grads:
    """Put zeros where nobody has a gradient: such a weight does not move."""
    shapes = dict(model.named_parameters())
    return {
        name: torch.zeros_like(shapes[name]) if grad is None else grad
        for name, grad in mean.items()
    }
