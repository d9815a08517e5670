"""Processes behind walls, as /proc shows them out here. Any of them may go while one looks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def children_of(pid: int) -> Iterator[int]:
    """Give the ids of a process's children, as they are numbered out here."""
    with suppress(OSError):  # it may go at any moment
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError, ValueError):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text()
                yield from (int(word) for word in text.split())


def inner_pid(pid: int) -> int:
    """Give the id that a process has in its own namespace; 0 if it has gone."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def end(pid: int) -> None:
    """End a process, and where it is the first of its namespace all others in it."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
