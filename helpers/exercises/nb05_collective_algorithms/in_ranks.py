"""Run answers of notebook 05 with simulated message times, or compare their `new_group` calls."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import torch
from torch import equal

from helpers.exercises.shared.in_ranks.groups import watch_new_group


def run_with_scripted_messages(
    answer: Any, rank: int, world_size: int, timing: Callable[..., float], ranks: int
) -> Any:
    """Call answer(measure, ranks), where `measure(nbytes)` returns simulated times."""

    def measure(nbytes: int) -> float:
        if not hasattr(nbytes, "__index__") or nbytes < 0:
            raise ValueError(f"measure({nbytes}): pass the number of bytes as an int, 0 or more.")
        return timing(index(nbytes))

    return answer(measure, ranks)


def run_in_two_levels(
    answer: Any, rank: int, world_size: int, x: torch.Tensor, per_host: int
) -> dict[str, Any]:
    """Call the answer, compare its `new_group` calls across ranks, and return its sum by name."""
    before = x.clone()
    with watch_new_group(rank, world_size):
        total = answer(rank, world_size, x, per_host)
    changed = "your function has changed `x`, which must keep its values: work on a clone"
    return {"x": "" if equal(before, x) else changed, "sum": total}
