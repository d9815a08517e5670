"""Run answers of notebook 21 inside the ranks: sum in few bytes, synchronize rarely.

Each function returns plain values by name. A text describes a problem that no value shows; "" means none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import equal

from helpers.exercises.shared.in_ranks.classifier import Weights, classifier
from helpers.exercises.shared.in_ranks.lend import lend
from helpers.exercises.shared.in_ranks.steps import watch_steps


def quantize_blocks(x: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 codes, (blocks, block), and the float32 scale of each block."""
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    return (blocks / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8), scales


def run_sum(
    answer: Callable[..., Any], rank: int, world_size: int, x: torch.Tensor, block: int
) -> dict[str, Any]:
    """Call the answer to sum the ranks' tensors."""
    lend(quantize_blocks)
    given = x.clone()
    total = answer(rank, world_size, given, block)
    return {"x": "" if equal(given, x) else "`x` has changed", "sum": total}


def run_memory(
    answer: Callable[..., Any], rank: int, world_size: int, xs: Sequence[torch.Tensor], block: int
) -> list[Any]:
    """Call the answer with one tensor after the other, and with the same memory each time."""
    lend(quantize_blocks)
    memory, found = torch.zeros_like(xs[0]), []
    for x in xs:
        given = x.clone()
        returned = answer(given, memory, block)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            return []
        codes, scales = returned
        kept = equal(given, x)
        found.append([codes.clone(), scales.clone(), memory.clone(), kept])
    return found


Rules = tuple[float, float, float]
"""Learning rate within a rank; learning rate and momentum between ranks."""


class Training(NamedTuple):
    """A rank's own samples and training settings. steps: how often its own optimizer steps."""

    weights: Weights
    rules: Rules
    x: torch.Tensor
    y: torch.Tensor
    batch_size: int
    every: int
    steps: int


def train(
    answer: Callable[..., Any], rank: int, world_size: int, drawn: Training
) -> dict[str, Any]:
    """Call the answer to train a model."""
    model = classifier(drawn.weights)
    lr, *outer = drawn.rules
    inner = torch.optim.AdamW(model.parameters(), lr)
    noted = watch_steps(model, inner, "inner.step()", drawn.steps)
    task = drawn.x, drawn.y, drawn.batch_size, drawn.every
    answer(rank, world_size, model, inner, *task, *outer)
    return noted()
