"""What ranks run around an answer of notebook 05: messages that the launching process times."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any


def with_scripted_messages(
    answer: Any, rank: int, world_size: int, lap: Callable[..., float], ranks: int
) -> Any:
    """Call answer(measure, ranks), `measure(nbytes)` being scripted."""

    def measure(nbytes: int) -> float:
        if not hasattr(nbytes, "__index__") or nbytes < 0:
            raise ValueError(
                f"measure({nbytes}): give the bytes as a whole number (int), 0 or more."
            )
        return lap(index(nbytes))

    return answer(measure, ranks)
