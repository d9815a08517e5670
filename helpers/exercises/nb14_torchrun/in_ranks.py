"""What runs around the answers of notebook 14: agents, workers, environments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helpers.checks.scripts import Source, compose, under_torchrun

AGENTS_S = 40.0
"""How long real agents may take: 2 to 5 s are usual, but thirty learners may share the machine."""
NAMES = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "TORCHELASTIC_RESTART_COUNT",
)


def read_env(
    answer: Source, rank: int, world_size: int, places: Sequence[Mapping[str, str]] | None
) -> dict[str, Any]:
    """Call the answer in each of these environments, or, without any, in two real workers."""
    if places is None:
        return under_torchrun(compose(answer, call, ()), 2, timeout_s=AGENTS_S)
    function = answer.build()
    values = []
    for place in places:
        for name in NAMES:
            os.environ.pop(name, None)
        os.environ.update(place)
        values.append(function())
    return {"values": values}


def call(answer: Callable[[], Any]) -> Any:
    """Call the answer in a worker."""
    return answer()
