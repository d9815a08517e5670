"""What exercises of notebook 08 share: gradients that are given, and what one process would train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.exercises.shared.gradients import Samples, total
from helpers.exercises.shared.in_ranks.classifier import Rule, Weights, classifier, flat

STEPS = "Nothing steps here: leave the mean in `p.grad`, whoever calls will step."
NO_GRADIENT_YET = Failed(
    "'NoneType' object has no attribute '(zero_|fill_|data|detach_|mul_|div_)'",
    "`p.grad` is None until a backward has set it, and again after `zero_grad()`, which clears what is there "
    "and leaves None alone.",
)


# --- gradients that are given ---------------------------------------------------------------------

Own = Sequence[Mapping[str, torch.Tensor | None]]
"""Each rank's gradients by name."""


def each_total(own: Own, shares: Sequence[float]) -> dict[str, Any]:
    """Add up the ranks' gradients, name by name; None for what no rank has."""
    return {name: total([one[name] for one in own], shares) for name in own[0]}


# --- what one process trains ----------------------------------------------------------------------


def draw_rule(draw: Draw) -> Rule:
    """Draw how the optimizer steps."""
    return draw.of(0.5, 0.25), draw.of(0.0, 0.9, 0.5), draw.of(0.0, 0.0, 0.01)


Models = list[torch.nn.Module]
Change = Callable[[int, Models], None]
"""What is done with all ranks' models in step number 1, 2, ..."""


def nothing(step: int, models: Models) -> None:
    """Leave them as they are."""


def forget(step: int, models: Models) -> None:
    """Set all gradients to zero."""
    for model in models:
        model.zero_grad(set_to_none=False)


def average_grads(divide_by: float = 0.0) -> Change:
    """Give every model the sum of the gradients, divided by their number or by another one."""

    def change(step: int, models: Models) -> None:
        for ps in zip(*(model.parameters() for model in models), strict=True):
            mean = sum(p.grad for p in ps if p.grad is not None) / (divide_by or len(models))
            for p in ps:
                p.grad = mean.clone()  # type: ignore[union-attr]

    return change


def average_weights(divide_by: float = 0.0) -> Change:
    """Give every model the sum of the weights, divided by their number or by another one."""

    def change(step: int, models: Models) -> None:
        for ps in zip(*(model.parameters() for model in models), strict=True):
            mean = sum(p.data for p in ps) / (divide_by or len(models))
            for p in ps:
                p.data.copy_(mean)

    return change


def at(when: Callable[[int], bool], change: Change) -> Change:
    """Change something in some steps only."""
    return lambda step, models: change(step, models) if when(step) else None


def trained(
    starts: Sequence[Weights],
    rule: Rule,
    batches: Sequence[Sequence[Samples]],
    grads: Change = nothing,
    before: Change = nothing,
    after: Change = nothing,
    clear: bool = True,
) -> list[dict[str, Any]]:
    """Train one model for each start, on batches[step][model]: what its author's ranks would show.

    grads, before, after: what happens after backward, before the step and after it.
    """
    models = [classifier(start) for start in starts]
    lr, momentum, decay = rule
    speed = [[torch.zeros_like(p) for p in model.parameters()] for model in models]
    found: list[dict[str, Any]] = [{} for _ in models]
    for step, parts in enumerate(batches, 1):
        for model, (x, y) in zip(models, parts, strict=True):
            if clear:
                model.zero_grad()
            cross_entropy(model(x), y).backward()
        grads(step, models)
        before(step, models)
        for model, speeds, seen in zip(models, speed, found, strict=True):
            seen[f"weights before step {step}"] = flat(model)
            for p, v in zip(model.parameters(), speeds, strict=True):
                v.mul_(momentum).add_(p.grad + decay * p.data)
                p.data -= lr * v
            seen[f"weights after step {step}"] = flat(model)
        after(step, models)
    return [seen | {"weights at the end": flat(m)} for m, seen in zip(models, found, strict=True)]


def loss(weights: torch.Tensor, like: Weights, x: torch.Tensor, y: torch.Tensor) -> float:
    """Give the mean loss of some samples by these weights, which come as one vector."""
    parts = weights.split([w.numel() for w in like])
    model = classifier([part.view_as(w) for part, w in zip(parts, like, strict=True)])
    with torch.no_grad():
        return float(cross_entropy(model(x), y))
