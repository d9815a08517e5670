"""The model of notebook 09's checks: all that a wrapper around a module trips over, in one module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from helpers.exercises.sgd_models import Branching

Route = Sequence[str]
"""The layers that an input passes, in order; "left" and "right" are the model's branches."""


class Assorted(Branching):
    """`Branching` with buffers: a tied weight, a frozen layer, layers that a route may leave out.

    `norm` has buffers that forward changes, one of them of whole numbers; `scale` is one that
    `state_dict()` leaves out.
    """

    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(self.WIDTH)
        for name in ("running_mean", "running_var"):
            nn.init.uniform_(self.norm.get_buffer(name), 0.5, 1.5)
        self.norm.get_buffer("num_batches_tracked").random_(100)
        self.register_buffer("scale", 0.5 + torch.rand(self.WIDTH), persistent=False)

    def forward(self, words: torch.Tensor, route: Any) -> torch.Tensor:
        hidden = self.norm(torch.tanh(self.frozen(self.table(words)))) * self.scale
        for name in route:
            hidden = torch.tanh(getattr(self, name)(hidden))
        result: torch.Tensor = self.out(hidden)
        return result


def assorted(seed: int, spare: bool, dtype: torch.dtype = torch.float64) -> Assorted:
    """Build the model; all in it depends on `seed` alone. spare: train the layer that nobody uses."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Assorted().to(dtype)
    model.spare.requires_grad_(spare)
    return model


def loss_of(model: Any, words: torch.Tensor, route: Route) -> torch.Tensor:
    """Give the loss of guessing the words backwards."""
    return cross_entropy(model(words, route), words.flip(0))


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Copy all parameters and buffers by name, a shared one under its first name."""
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in named}


def buffers(model: nn.Module) -> dict[str, torch.Tensor]:
    """Copy all buffers by name."""
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}


def nbytes(tensors: Any) -> int:
    """Count the bytes of some tensors."""
    return sum(t.numel() * t.element_size() for t in tensors)


def packed(sizes: Sequence[int], bucket_bytes: int) -> list[int]:
    """Give the bytes of each bucket: filled in this order, none beyond the limit but single ones."""
    found: list[int] = []
    for size in sizes:
        if found and found[-1] + size <= bucket_bytes:
            found[-1] += size
        else:
            found.append(size)
    return found
