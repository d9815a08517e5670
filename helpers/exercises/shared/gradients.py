"""Draw and judge the combined gradients of a small classifier."""

from __future__ import annotations

import torch

from helpers.checks.author import CrashAdvice, Draw

Samples = tuple[torch.Tensor, torch.Tensor]
PARITY_MARGIN = 1e3
"""The exercises' tolerance, 1e-6, as a multiple of float64's usual tolerance."""
UNEQUAL_ADVICE = (
    "The ranks passed tensors of different sizes to one call. Does every rank go through the same "
    "parameters in the same order, using `torch.zeros_like(p)`, which has the parameter's shape and "
    "dtype, in place of a missing tensor?"
)
SAME_CALLS_ADVICE = (
    "A collective waits for all ranks, so every rank must make the same calls in the same order."
)
NO_GRAD_ADVICE = CrashAdvice(
    "requires grad",
    "Autograd doesn't allow changing a weight in place. Depending on the task, write to `p.grad`, write "
    "to `p.data`, or write under `with torch.no_grad():`.",
)


# --- a classifier and its samples -----------------------------------------------------------------


def draw_weights(draw: Draw, pixels: int, classes: int, hidden: int = 3) -> list[torch.Tensor]:
    """Draw the weights of a classifier."""
    shapes = (hidden, pixels), (hidden,), (classes, hidden), (classes,)
    return [torch.randn(s, generator=draw.generator()).double() / 2 for s in shapes]


def draw_samples(draw: Draw, count: int, pixels: int, classes: int) -> Samples:
    """Draw samples, which are flat or pictures of one row."""
    x = torch.randn(count, pixels, generator=draw.generator()).double()
    y = torch.randint(classes, (count,), generator=draw.generator())
    return (x[:, None, None] if draw.of(True, False) else x), y


def cut_batches(x: torch.Tensor, y: torch.Tensor, size: int, steps: int) -> list[Samples]:
    """Cut each step's samples out of x and y."""
    cuts = [slice(k * size, (k + 1) * size) for k in range(steps)]
    return [(x[cut], y[cut]) for cut in cuts]
