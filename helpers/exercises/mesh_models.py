"""The two layers of notebook 15's mesh training, built alike by the ranks and by the judging process."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import Linear
from torch.nn.functional import cross_entropy, linear, relu

PIXELS, CLASSES, DTYPE = 64, 10, torch.float64
Parts = tuple[torch.Tensor, torch.Tensor]
"""Of the weight of `up` and of that of `down`: the whole, or what one rank holds of them."""


def two_layers(seed: int, hidden: int) -> tuple[Linear, Linear]:
    """Build up and down, without biases; their weights depend on `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = ((PIXELS, hidden), (hidden, CLASSES))
        up, down = (Linear(i, o, bias=False, dtype=DTYPE) for i, o in sizes)
    return up, down


def steps_of_one(
    layers: Sequence[Linear],
    x: torch.Tensor,
    y: torch.Tensor,
    batch_size: int,
    steps: int,
    lr: float,
) -> list[Parts]:
    """Train the dense layers in one process: both weights after every step."""
    up, down = (layer.weight.detach().clone().requires_grad_() for layer in layers)
    after = []
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        loss = cross_entropy(linear(relu(linear(x[own], up)), down), y[own])
        grads = torch.autograd.grad(loss, (up, down))
        with torch.no_grad():
            up -= lr * grads[0]
            down -= lr * grads[1]
        after.append((up.detach().clone(), down.detach().clone()))
    return after
