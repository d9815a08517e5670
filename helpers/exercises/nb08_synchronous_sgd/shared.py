"""What exercises of notebook 08 share: gradients that are given, and what one process would train."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from helpers.checks.author import *
from helpers.exercises.shared.gradients import Samples, total
from helpers.exercises.shared.in_ranks.classifier import Rule, Weights, classifier, flat, grad_of

STEPS = "This changes the weights: only leave the mean in `p.grad`; the caller steps."
NO_GRADIENT_YET = Failed(
    "'NoneType' object has no attribute '(zero_|fill_|data|detach_|mul_|div_)'",
    "`p.grad` is None until backward has set it. `zero_grad()` clears gradients that exist and skips None.",
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


def average_grads(step: int, models: Models) -> None:
    """Give every model the mean of the gradients."""
    for ps in zip(*(model.parameters() for model in models), strict=True):
        mean = torch.stack([p.grad for p in ps if p.grad is not None]).mean(0)
        for p in ps:
            p.grad = mean.clone()


def average_weights(steps: Collection[int]) -> Change:
    """Give every model the mean of the weights after these steps."""

    def change(step: int, models: Models) -> None:
        for ps in zip(*(model.parameters() for model in models if step in steps), strict=True):
            mean = torch.stack([p.data for p in ps]).mean(0)
            for p in ps:
                p.data.copy_(mean)

    return change


def trained(
    starts: Sequence[Weights],
    rule: Rule,
    batches: Sequence[Sequence[Samples]],
    grads: Change = nothing,
    after: Change = nothing,
) -> list[dict[str, Any]]:
    """Train one model for each start, on batches[step][model]: what ranks must show.

    grads, after: what happens between backward and step, and after the step. The step is written out, as
    torch's first optimizer imports for a second.
    """
    models = [classifier(start) for start in starts]
    lr, momentum, decay = rule
    speed = [[torch.zeros_like(p) for p in model.parameters()] for model in models]
    found: list[dict[str, Any]] = [{} for _ in models]
    for step, parts in enumerate(batches, 1):
        for model, (x, y) in zip(models, parts, strict=True):
            model.zero_grad()
            cross_entropy(model(x), y).backward()
        grads(step, models)
        for model, speeds, seen in zip(models, speed, found, strict=True):
            seen[f"weights before step {step}"] = flat(model)
            for p, v in zip(model.parameters(), speeds, strict=True):
                v.mul_(momentum).add_(grad_of(p) + decay * p.data)
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
