"""Who may run at a time: all graders of a batch next to each other, or one of them alone.

An answer that was too slow next to others is tried again while no other one runs. The lock is one of a file
(flock), which the kernel gives back when a grader dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_WAIT_S = 60.0
"""How long a grader waits for its turn. It then goes on all the same: a neighbor may take long, too."""
_LOOK_S = 0.02


@dataclass(frozen=True)
class Turns:
    """A lock of a batch's graders. file: "" where one grader runs at a time anyway."""

    file: str = ""

    @contextmanager
    def with_others(self) -> Iterator[None]:
        """Run next to others, when nobody runs alone."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run when nobody else does; whatever runs within may call `with_others`."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _held(self, kind: int) -> Iterator[None]:
        fd = -1
        with suppress(OSError):  # the disk is full: what was graded so far is kept, and said
            if self.file and self.file not in _ALONE:
                fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if fd < 0:
            yield
            return
        try:
            _lock(fd, kind)
            if kind == fcntl.LOCK_EX:
                _ALONE.add(self.file)
            yield
        finally:
            if kind == fcntl.LOCK_EX:
                _ALONE.discard(self.file)
            os.close(fd)


_ALONE: set[str] = set()
"""The locks that this process holds alone."""


def _lock(fd: int, kind: int) -> None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(_LOOK_S)
