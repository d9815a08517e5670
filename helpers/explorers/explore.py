"""Open an explorer by its name: `explore("pipeline")`."""

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
    """Show a picture with controls.

    Args:
        name: "collective" (on real ranks), "algorithms" (ring and tree, round by round), "samples" (a
            sampler's shares), "buckets" (during backward), "memory" (DDP to ZeRO-3), "pipeline"
            (schedules), "checkpoints" (how often to write one), or "cost" (layouts of a training run).
        setting: Initial values of controls, if they differ from the default.

    Raises:
        ValueError: The name does not exist, or a control does not offer the value.
    """
    if name not in NAMES:
        raise ValueError(f"there is no explorer {name!r}. Available: {', '.join(NAMES)}.")
    module = import_module(f"helpers.explorers.{name}")
    return Explorer(module, module.START_SETTING | setting)
