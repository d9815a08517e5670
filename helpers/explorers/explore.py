"""`explore("pipeline")`: the door to all explorers, by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from helpers.explorers.form import Explorer

NAMES = (
    "collective",
    "algorithms",
    "samples",
    "buckets",
    "memory",
    "pipeline",
    "checkpoints",
    "cost",
)


def explore(name: str, **setting: Any) -> Explorer:
    """Show a picture with controls. setting: what they begin with, where it is not the usual.

    name: "collective" (on real ranks), "algorithms" (ring and tree, round by round), "samples" (a sampler's
    shares), "buckets" (over the backward pass), "memory" (DDP to ZeRO-3), "pipeline" (schedules),
    "checkpoints" (how often), "cost" (layouts of a training run). Raises ValueError for another name, and
    for what the controls do not offer.
    """
    if name not in NAMES:
        raise ValueError(f"there is no explorer {name!r}. Available: {', '.join(NAMES)}.")
    module = import_module(f"helpers.explorers.{name}")
    return Explorer(module, module.START | setting)
