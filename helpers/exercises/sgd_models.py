"""The models of notebook 08's checks: built alike by the ranks and by the process that judges them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.functional import cross_entropy

Grads = dict[str, torch.Tensor | None]
"""Each parameter's gradient by its name; None where backward has left none."""

CLASSES, HIDDEN = 10, 24


def classifier(seed: int, pixels: int = 64) -> nn.Module:
    """Build a small classifier of digits in float64; its weights depend on `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(pixels, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    return model.double()


class Branching(nn.Module):
    """A model with everything that a loop over parameters trips over.

    `table` and `out` share one weight; `frozen` is not trained; an input takes one of the two
    branches, so that the other is left without a gradient; nobody uses `spare`.
    """

    WORDS, WIDTH = 6, 4
    BRANCHES = ("left", "right")

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(self.WORDS, self.WIDTH)
        self.frozen = nn.Linear(self.WIDTH, self.WIDTH).requires_grad_(False)
        self.left = nn.Linear(self.WIDTH, self.WIDTH)
        self.right = nn.Linear(self.WIDTH, self.WIDTH)
        self.spare = nn.Linear(self.WIDTH, 1)
        self.out = nn.Linear(self.WIDTH, self.WORDS, bias=False)
        self.out.weight = self.table.weight

    def forward(self, words: torch.Tensor, branch: str) -> torch.Tensor:
        hidden = torch.tanh(self.frozen(self.table(words)))
        result: torch.Tensor = self.out(torch.tanh(getattr(self, branch)(hidden)))
        return result


def branching(seed: int, dtype: torch.dtype) -> Branching:
    """Build the model with branches; its weights depend on `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Branching().to(dtype)


def walk_branches(model: Branching, words: torch.Tensor, branches: Sequence[str]) -> None:
    """Run backward for this rank's words through these branches; with none, leave no gradient."""
    for branch in branches:
        cross_entropy(model(words, branch), words.flip(0)).backward()


def backward(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    """Run backward from the mean loss of these samples; without any, leave no gradient."""
    if len(x):
        cross_entropy(model(x), y).backward()


def grads(model: nn.Module) -> Grads:
    """Copy each parameter's gradient, a shared one under its first name."""
    return {
        name: None if p.grad is None else p.grad.detach().clone()
        for name, p in model.named_parameters()
    }


def weights(model: nn.Module) -> torch.Tensor:
    """Copy all parameters into one vector, in the model's order."""
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def trained_bytes(model: nn.Module) -> int:
    """Count the bytes of all gradients that the model can have, a shared one once."""
    return sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)


def trained_count(model: nn.Module) -> int:
    """Count the parameters that are trained, a shared one once."""
    return sum(p.requires_grad for p in model.parameters())
