"""What a rank's own code may ask of the machinery around it: `span`, and whether it is a rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helpers.trace.recorder import Recorder


class _Here:
    """The recorder of the rank that this process is; None in every other process."""

    recorder: Recorder | None = None


def set_recorder(recorder: Recorder) -> None:
    """Tell this process that it is a rank whose calls go to `recorder`."""
    _Here.recorder = recorder


def inside_rank() -> bool:
    """Tell whether this process is a rank, or was started by one."""
    return os.environ.get("REAL_RANKS_INSIDE") == "1"


@contextmanager
def span(name: str) -> Iterator[None]:
    """Record the time that the block takes under `name`, as a bar in this rank's lane.

    Use it around work that is not communication, so that the timeline shows what overlaps with
    what. Outside a rank it does nothing.
    """
    if _Here.recorder is None:
        yield
        return
    with _Here.recorder.span(name):
        yield
