"""Record an optimizer's steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from helpers.exercises.shared.in_ranks.classifier import flat


def record_steps(
    model: nn.Module, optimizer: torch.optim.Optimizer, call: str, right: int
) -> Callable[[], dict[str, Any]]:
    """Record the weights around each step of the optimizer; return a function that returns them by name.

    call: the step as written in the answer. right: the expected number of steps; later steps are only
    counted.
    """
    seen: dict[str, Any] = {}
    made = 0

    def record_weights(moment: str) -> None:
        if made <= right:
            seen[f"weights {moment} step {made}"] = flat(model)

    def before_step(*_: Any) -> None:
        nonlocal made
        made += 1
        record_weights("before")

    optimizer.register_step_pre_hook(before_step)
    optimizer.register_step_post_hook(lambda *_: record_weights("after"))

    def result() -> dict[str, Any]:
        times = {0: "never", 1: "once"}
        called, wanted = (times.get(k, f"{k} times") for k in (made, right))
        wrong = f"this rank calls {call} {called}; expected: {wanted}"
        return {"steps": "" if made == right else wrong, **seen, "weights at the end": flat(model)}

    return result
