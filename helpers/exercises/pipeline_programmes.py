"""What the ranks run around an answer of notebook 12: a stage, its microbatches, and who looks on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.pipeline_models import gradients, mean_square, stage_modules, two_halves
from helpers.exercises.watched_stage import WatchedStage


def split_in_two(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor | None,
    y: torch.Tensor | None,
    cut: int,
    width: int,
    seed: int,
    double: bool,
) -> dict[str, Any]:
    """Let the answer train one step of a model on two ranks; tell which layers ran here."""
    model = two_halves(seed, cut, width, torch.float64 if double else torch.float32)
    ran: list[int] = []
    for index, layer in enumerate(model):
        layer.register_forward_hook(lambda *_, index=index: ran.append(index))
    loss = answer(rank, model, cut, x, y)
    graph = isinstance(loss, torch.Tensor) and loss.requires_grad
    kept = loss.detach() if isinstance(loss, torch.Tensor) else loss
    return {"loss": kept, "graph": graph, "ran": ran, "grads": gradients(model)}


def run_schedule(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    mine: list[torch.Tensor],
    rows: int,
    microbatches: int,
    seed: int,
    double: bool,
) -> dict[str, Any]:
    """Let the answer take all microbatches through this rank's stage and back."""
    dtype = torch.float64 if double else torch.float32
    module = stage_modules(seed, world_size, dtype)[rank]
    stage = WatchedStage(rank, world_size, module, mine, rows, microbatches)
    answer(rank, world_size, stage, microbatches)
    return stage._report()


def run_torchs(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor | None,
    y: torch.Tensor | None,
    microbatches: int,
    seed: int,
) -> dict[str, Any]:
    """Let the answer run one step of torch's pipeline; tell whose step it was."""
    from torch.distributed.pipelining import schedules

    module = stage_modules(seed, world_size, torch.float32)[rank]
    steps: list[str] = []
    real = schedules.PipelineScheduleSingle.step

    def step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
        steps.append(type(schedule).__name__)
        return real(schedule, *args, **kwargs)

    schedules.PipelineScheduleSingle.step = step  # type: ignore[method-assign, assignment]
    try:
        losses = answer(rank, world_size, module, microbatches, mean_square, x, y)
    finally:
        schedules.PipelineScheduleSingle.step = real  # type: ignore[method-assign]
    return {
        "losses": losses,
        "steps": steps,
        "grads": gradients(module),
    }
