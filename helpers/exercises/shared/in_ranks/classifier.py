"""A small classifier, its weights as one vector, and its gradients by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

Weights = Sequence[torch.Tensor]
Rule = tuple[float, float, float]
"""The learning rate, the momentum and the weight decay of torch.optim.SGD."""


def build_classifier(weights: Weights) -> nn.Module:
    """Build a small classifier in float64 from its two layers' weights and biases."""
    (hidden, pixels), classes = weights[0].shape, len(weights[3])
    layers = nn.Linear(pixels, hidden), nn.Tanh(), nn.Linear(hidden, classes)
    model = nn.Sequential(nn.Flatten(), *layers).double()
    for p, value in zip(model.parameters(), weights, strict=True):
        p.data.copy_(value)
    return model


def flat(model: nn.Module) -> torch.Tensor:
    """Copy all parameters into one vector."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def grad_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the gradient left by backward. Raises RuntimeError if there is no gradient."""
    if tensor.grad is None:
        raise RuntimeError("backward has left no gradient here")
    return tensor.grad


def grads_of(model: nn.Module) -> dict[str, Any]:
    named = model.named_parameters()
    return {n: None if p.grad is None else p.grad.detach().clone() for n, p in named}


def copy_laid_out(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor. A tensor with four dimensions is copied as channels_last, as in models for images."""
    order = torch.channels_last if tensor.dim() == 4 else torch.contiguous_format
    return tensor.clone(memory_format=order)
