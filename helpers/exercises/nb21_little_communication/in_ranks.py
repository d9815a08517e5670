"""What the ranks run around an answer of notebook 21: a sum in few bytes, and training that seldom meets.

Each gives back plain values by name. A text tells what was seen that no value shows; "" is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from helpers.exercises.shared.in_ranks.classifier import Weights, classifier, flat
from helpers.exercises.shared.in_ranks.lend import lend


def quantize_blocks(x: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Give int8 codes, (blocks, block), and the float32 scale of each block."""
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    return (blocks / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8), scales


def run_sum(
    answer: Callable[..., Any], rank: int, world_size: int, x: torch.Tensor, block: int
) -> dict[str, Any]:
    """Let the answer add up the ranks' tensors."""
    lend(quantize_blocks)
    given = x.clone()
    total = answer(rank, world_size, given, block)
    return {"x": "" if torch.equal(given, x) else "`x` has changed", "sum": total}


def run_memory(
    answer: Callable[..., Any], rank: int, world_size: int, xs: Sequence[torch.Tensor], block: int
) -> list[Any]:
    """Call the answer with one tensor after the other, and the same memory each time."""
    lend(quantize_blocks)
    memory, found = torch.zeros_like(xs[0]), []
    for x in xs:
        given = x.clone()
        returned = answer(given, memory, block)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            return []
        codes, scales = returned
        kept = torch.equal(given, x)
        found.append([codes.clone(), scales.clone(), memory.clone(), kept])
    return found


Rules = tuple[float, float, float]
"""Learning rate within a rank; learning rate and momentum between ranks."""


def train(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weights: Weights,
    rules: Rules,
    x: torch.Tensor,
    y: torch.Tensor,
    batch_size: int,
    every: int,
    steps: int,
) -> dict[str, Any]:
    """Let the answer train. steps: how often this rank's own optimizer steps."""
    model = classifier(weights)
    lr, outer_lr, momentum = rules
    inner = torch.optim.AdamW(model.parameters(), lr)
    seen: dict[str, Any] = {}
    made = 0

    def before(*_: Any) -> None:
        nonlocal made
        made += 1
        if made <= steps:
            seen[f"weights before step {made}"] = flat(model)

    def after(*_: Any) -> None:
        if made <= steps:
            seen[f"weights after step {made}"] = flat(model)

    inner.register_step_pre_hook(before)
    inner.register_step_post_hook(after)
    answer(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum)
    times = {0: "never", 1: "once"}
    called, right = (times.get(k, f"{k} times") for k in (made, steps))
    wrong = f"inner.step() is called {called} here; {right} is right"
    return {"steps": "" if made == steps else wrong, **seen, "weights at the end": flat(model)}
