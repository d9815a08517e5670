"""Record an optimizer's steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from helpers.exercises.shared.in_ranks.classifier import flat


def watch_steps(
    model: nn.Module, optimizer: torch.optim.Optimizer, call: str, right: int
) -> Callable[[], dict[str, Any]]:
    """Record the weights around each step of the optimizer; return a function that returns them by name.

    call: the step as the answer writes it. right: the expected number of steps; later ones are only
    counted.
    """
    seen: dict[str, Any] = {}
    made = 0

    def note(moment: str) -> None:
        if made <= right:
            seen[f"weights {moment} step {made}"] = flat(model)

    def before(*_: Any) -> None:
        nonlocal made
        made += 1
        note("before")

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(lambda *_: note("after"))

    def noted() -> dict[str, Any]:
        times = {0: "never", 1: "once"}
        called, wanted = (times.get(k, f"{k} times") for k in (made, right))
        wrong = f"this rank calls {call} {called}; {wanted} is right"
        return {"steps": "" if made == right else wrong, **seen, "weights at the end": flat(model)}

    return noted
