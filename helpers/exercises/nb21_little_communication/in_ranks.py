"""Run answers of notebook 21 inside the ranks: sum in few bytes, synchronize rarely.

Each function returns plain values by name. A string describes a problem not visible in values; "" means none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import equal

from helpers.exercises.shared.in_ranks.classifier import Weights, build_classifier
from helpers.exercises.shared.in_ranks.lend import define_if_missing
from helpers.exercises.shared.in_ranks.steps import record_steps


def quantize_blocks(x: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 codes, (blocks, block), and the float32 scale of each block."""
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    return (blocks / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8), scales


def run_sum(
    answer: Callable[..., Any], rank: int, world_size: int, x: torch.Tensor, block: int
) -> dict[str, Any]:
    """Call the answer to sum the ranks' tensors."""
    define_if_missing(quantize_blocks)
    given = x.clone()
    total = answer(rank, world_size, given, block)
    return {"x": "" if equal(given, x) else "`x` has changed", "sum": total}


def run_quantize_with_memory(
    answer: Callable[..., Any], rank: int, world_size: int, xs: Sequence[torch.Tensor], block: int
) -> list[Any]:
    """Call the answer with one tensor after another, and with the same memory each time."""
    define_if_missing(quantize_blocks)
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


DilocoSettings = tuple[float, float, float]
"""The learning rate within a rank, followed by the learning rate and the momentum between ranks."""


class Training(NamedTuple):
    """A rank's own samples and training settings. steps: the number of its optimizer's steps."""

    weights: Weights
    rules: DilocoSettings
    x: torch.Tensor
    y: torch.Tensor
    batch_size: int
    every: int
    steps: int


def run_training(
    answer: Callable[..., Any], rank: int, world_size: int, training: Training
) -> dict[str, Any]:
    """Call the answer to train a model."""
    model = build_classifier(training.weights)
    lr, *outer = training.rules
    inner = torch.optim.AdamW(model.parameters(), lr)
    recorded = record_steps(model, inner, "inner.step()", training.steps)
    task = training.x, training.y, training.batch_size, training.every
    answer(rank, world_size, model, inner, *task, *outer)
    return recorded()
