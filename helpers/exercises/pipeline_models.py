"""The models of notebook 12's checks, stage by stage, and what one process computes with all of them.

Built alike by the ranks and by the process that judges them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy

WIDTH, CLASSES, PIXELS = 6, 10, 64


def stage_modules(seed: int, stages: int, dtype: torch.dtype) -> list[nn.Sequential]:
    """Build the layers of each stage; between two stages travels a tensor of WIDTH columns."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        modules = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(stages)]
    return [module.to(dtype) for module in modules]


def two_halves(seed: int, cut: int, width: int, dtype: torch.dtype) -> nn.Sequential:
    """Build a classifier of digits in which layer number `cut` takes `width` columns."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first: list[nn.Module] = [nn.Linear(PIXELS, width), nn.Tanh()]
        while len(first) < cut:
            first += [nn.Linear(width, width), nn.Tanh()]
        layers = [*first, nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, CLASSES)]
        return nn.Sequential(*layers).to(dtype)


def mean_square(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Give the loss of one microbatch."""
    return ((output - target) ** 2).mean()


def gradients(module: nn.Module) -> dict[str, torch.Tensor | None]:
    """Give a copy of each gradient by its parameter's name."""
    return {n: None if p.grad is None else p.grad.clone() for n, p in module.named_parameters()}


@dataclass(frozen=True)
class StageTruth:
    """What one stage must have met: by microbatch what came in from both sides, and its gradients."""

    activations: tuple[torch.Tensor, ...]
    from_next: tuple[torch.Tensor, ...]
    gradients: dict[str, torch.Tensor | None]
    losses: tuple[float, ...] = ()


def pipeline_truth(
    modules: Sequence[nn.Module], inputs: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]
) -> list[StageTruth]:
    """Compute all microbatches in one process, and note what crosses each border."""
    activations: list[list[torch.Tensor]] = [[] for _ in modules]
    coming_back: list[list[torch.Tensor]] = [[] for _ in modules]
    losses = []
    for x, target in zip(inputs, targets, strict=True):
        borders = []
        for index, module in enumerate(modules):
            activations[index].append(x.detach())
            x = module(x)
            x.retain_grad()
            borders.append(x)
        loss = mean_square(x, target)
        losses.append(float(loss.detach()))
        (loss / len(inputs)).backward()
        for index, border in enumerate(borders):
            assert border.grad is not None
            coming_back[index].append(border.grad)
    return [
        StageTruth(tuple(came), tuple(back), gradients(module), tuple(losses))
        for came, back, module in zip(activations, coming_back, modules, strict=True)
    ]


def split_truth(
    model: nn.Sequential, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, dict[str, torch.Tensor | None]]:
    """Give the loss and the gradients that one process computes with the whole model."""
    loss = cross_entropy(model(x), y)
    loss.backward()
    return loss.detach(), gradients(model)
