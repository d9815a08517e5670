"""What one process computes in place of notebook 11's ranks, and what it would with a known mistake.

`zero_cases` takes the truth from here; the modules look_at_zero* compare with the mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from helpers.exercises.sgd_models import classifier, weights
from helpers.exercises.sgd_truth import Samples


def stepped(
    batches: Sequence[Samples],
    seed: int,
    name: str,
    options: Mapping[str, Any],
    *,
    forgetful: bool = False,
) -> Iterator[torch.Tensor]:
    """Give the weights after each step. forgetful: with an optimizer made anew for each."""
    model = classifier(seed)
    optimizer = getattr(torch.optim, name)(model.parameters(), **options)
    for x, y in batches:
        if forgetful:
            optimizer = getattr(torch.optim, name)(model.parameters(), **options)
        model.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
        yield weights(model)


def trained(
    x: torch.Tensor,
    y: torch.Tensor,
    seed: int,
    steps: int,
    lr: float,
    *,
    name: str = "Adam",
    clears: bool = True,
) -> dict[str, torch.Tensor]:
    """Give the weights by name after so many steps. clears: with zero_grad before each."""
    model = classifier(seed)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=lr)
    for _ in range(steps):
        if clears:
            model.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return {name: p.detach().clone() for name, p in model.named_parameters()}
