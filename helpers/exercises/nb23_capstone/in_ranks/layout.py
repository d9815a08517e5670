"""Run answers of notebook 23 inside the ranks: a mesh, and training on it.

Each function returns plain values by name; only the launching process knows the right values. A string
describes a problem not visible in values; "" means none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from helpers.exercises.shared.in_ranks.groups import watch_new_group

PARTS = ("coordinate", "ranks", "hosts", "sum")


def run_mesh_layout(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    sizes: Mapping[str, int],
    order: str,
    per_host: int,
    x: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer, compare its `new_group` calls across ranks, and return its results by name."""
    with watch_new_group(rank, world_size):
        got = answer(rank, world_size, dict(sizes), order, per_host, x)
    if got is None:
        return None
    if not isinstance(got, dict):
        return {"dict": f"a {type(got).__name__} came back, not a dict"}
    if set(got) != set(sizes):
        return {"dict": f"its keys are {', '.join(map(str, got))}, not {', '.join(sizes)}"}
    for name, value in got.items():
        if not isinstance(value, (tuple, list)) or len(value) != len(PARTS):
            return {"dict": f"{name} is not a tuple of four: coordinate, ranks, hosts and sum"}
    found = {f"{name}, {p}": got[name][i] for i, p in enumerate(PARTS) for name in sizes}
    return {"dict": "", **found}


# --- training on a mesh ---------------------------------------------------------------------------


class Training(NamedTuple):
    """A mesh's tp size, this rank's initial weights of two layers, and the samples of all ranks."""

    tp: int
    up: torch.Tensor
    down: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    batch_size: int
    steps: int
    lr: float


def run_training(
    answer: Callable[..., Any], rank: int, world_size: int, training: Training
) -> dict[str, Any] | None:
    """Call the answer to train two layers with this rank's initial weights; return its parts by step."""
    tp, up, down, x, y, batch_size, steps, lr = training
    layers = [_linear(weight) for weight in (up, down)]
    with watch_new_group(rank, world_size):
        got = answer(rank, world_size, tp, *layers, x.clone(), y.clone(), batch_size, steps, lr)
    if got is None:
        return None
    if not isinstance(got, (list, tuple)):
        return {"list": f"a {type(got).__name__} came back, not a list"}
    if len(got) != steps:
        return {"list": f"{len(got)} entries came back, but there were {steps} steps"}
    found: dict[str, Any] = {"list": ""}
    for step, pair in enumerate(got, 1):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return {"list": "an entry is not a pair: this rank's parts of up and of down"}
        for name, part in zip(("up", "down"), pair, strict=True):
            plain = isinstance(part, torch.Tensor) and not hasattr(part, "to_local")
            said = f"a {type(part).__name__}, not a plain tensor"
            found[f"{name} after step {step}"] = part.detach() if plain else said
    return found


def _linear(weight: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer
