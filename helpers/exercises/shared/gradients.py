"""What is drawn, judged and said where a small classifier's gradients are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import ByName, Draw, Failed
from helpers.exercises.shared.in_ranks.classifier import Weights, classifier, grad_of

Grads = list[torch.Tensor]
Samples = tuple[torch.Tensor, torch.Tensor]
PARITY = 1e3
"""How many times coarser than float64's usual room the exercises' 1e-6 is."""
UNEQUAL = (
    "Tensors of different sizes met in one call. Does every rank go through the same parameters in the same "
    "order, with `torch.zeros_like(p)`, which has the parameter's shape and dtype, where it has nothing?"
)
SAME_CALLS = (
    "A collective waits for all ranks: every rank must make the same calls, in the same order."
)
GUARDED = Failed(
    "requires grad",
    "Autograd guards the weights: write into `p.data`, or under `with torch.no_grad():`, or into "
    "`p.grad`, whatever the task asks for.",
)


# --- gradients that are given ---------------------------------------------------------------------


@dataclass(frozen=True)
class Gradients(ByName):
    """Judges gradients by name. unused: those that no rank has, which may be None or zeros."""

    unused: frozenset[str] = frozenset()

    def first(self, got: Any, rank: int) -> tuple[str, str]:
        if isinstance(got, dict):
            wanted = self.right[rank]
            got = {n: wanted[n] if n in self.unused and v is None else v for n, v in got.items()}
        return super().first(got, rank)


def total(grads: Sequence[torch.Tensor | None], shares: Sequence[float] | None = None) -> Any:
    """Add up gradients, each times its share; a missing one counts as zero, None if all are missing."""
    shares = shares or [1.0] * len(grads)
    parts = [(g.double() * s, g.dtype) for g, s in zip(grads, shares, strict=True) if g is not None]
    return torch.stack([part for part, _ in parts]).sum(0).to(parts[0][1]) if parts else None


# --- a classifier and its samples -----------------------------------------------------------------


def draw_weights(draw: Draw, pixels: int, classes: int, hidden: int = 3) -> list[torch.Tensor]:
    """Draw the weights of a classifier."""
    shapes = (hidden, pixels), (hidden,), (classes, hidden), (classes,)
    return [torch.randn(s, generator=draw.generator()).double() / 2 for s in shapes]


def draw_samples(draw: Draw, count: int, pixels: int, classes: int) -> Samples:
    """Draw samples, flat ones or pictures of one row."""
    x = torch.randn(count, pixels, generator=draw.generator()).double()
    y = torch.randint(classes, (count,), generator=draw.generator())
    return (x[:, None, None] if draw.of(True, False) else x), y


def gradients(weights: Weights, x: torch.Tensor, y: torch.Tensor) -> Grads:
    """Give the gradients of the mean loss over one microbatch."""
    model = classifier(weights)
    cross_entropy(model(x), y).backward()
    return [grad_of(p) for p in model.parameters()]


def batches_of(x: torch.Tensor, y: torch.Tensor, size: int, steps: int) -> list[Samples]:
    """Cut the samples of each step out of x and y."""
    cuts = [slice(k * size, (k + 1) * size) for k in range(steps)]
    return [(x[cut], y[cut]) for cut in cuts]
