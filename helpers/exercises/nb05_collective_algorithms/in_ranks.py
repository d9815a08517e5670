"""What ranks run around an answer of notebook 05: messages with a scripted stopwatch."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

from helpers.checks.stopwatch import Script, Stopwatch


def with_scripted_messages(
    answer: Any, rank: int, world_size: int, scripted: Mapping[str, Any]
) -> Any:
    """Call answer(measure, ranks), `measure(nbytes)` being scripted."""
    alpha, beta = scripted["alpha"], scripted["beta"]
    watch = Stopwatch(Script(scripted["seed"], noise_s=0.04 * alpha), lambda n: alpha + beta * n)

    def measure(nbytes: int) -> float:
        if not hasattr(nbytes, "__index__") or nbytes < 0:
            raise ValueError(
                f"measure({nbytes}): give the bytes as a whole number (int), 0 or more."
            )
        return watch(index(nbytes))

    return answer(measure, scripted["ranks"])
