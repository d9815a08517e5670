"""What the ranks run around an answer of notebook 06: a peer that never comes, a file to prepare."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch

from helpers.ranks.inside import launch_folder, span

PREPARING_S = 0.15
"""How long preparing takes: long enough that a rank which does not wait comes too early."""


def with_absent_ranks(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    batches: list[torch.Tensor],
    patience_s: float,
    absent: list[int],
) -> Any:
    """Call the answer on all ranks but those that stay away; give an error's text where it raises."""
    if rank in absent:
        return "absent"
    patience = timedelta(seconds=patience_s)
    if not absent:
        return answer(rank, world_size, batches, patience)
    try:
        return answer(rank, world_size, batches, patience)
    except RuntimeError as error:
        return f"raised: {error}"


def with_a_file(
    answer: Callable[..., Any], rank: int, world_size: int, name: str, content: str
) -> Any:
    """Hand the answer `prepare`, which takes a while to write a file, and `read`, which needs it."""
    path = launch_folder() / hashlib.sha256(name.encode()).hexdigest()[:16]

    def prepare() -> None:
        with span("prepare"):
            time.sleep(PREPARING_S)
            path.write_text(content)

    def read() -> str:
        with span("read"):
            return path.read_text()

    return answer(rank, world_size, prepare, read)
