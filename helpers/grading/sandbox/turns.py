"""Who may run at a time: all graders of a batch next to each other, or one of them alone.

An answer that was too slow next to others is tried again while no other one runs. The locks are those of
files (flock), which the kernel gives back when a grader dies.

    with others:  gate, shared -> turn, shared -> leave the gate, run
    alone:        gate, exclusive -> turn, exclusive -> run

So nobody new comes in while a grader waits to be alone: it waits for those that run now, and no longer.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# How long a grader waits for its turn: much longer than a set of cases takes. To run next to one
# that is alone would spoil its time, so the others wait for as long as it may have waited, and may
# take.
_PATIENCE_S = {fcntl.LOCK_EX: 300.0, fcntl.LOCK_SH: 1800.0}
_LOOK_S = 0.02


@dataclass(frozen=True)
class Turns:
    """The locks of a batch's graders. file: "" where one grader runs at a time anyway."""

    file: str = ""

    @contextmanager
    def with_others(self) -> Iterator[bool]:
        """Run next to others, when nobody runs alone."""
        with self._held(fcntl.LOCK_SH) as is_ours:
            yield is_ours

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Run when nobody else does; give whether that is so, as another grader may take too long.

        Whatever runs within may call `with_others`.
        """
        with self._held(fcntl.LOCK_EX) as is_ours:
            yield is_ours

    @contextmanager
    def _held(self, kind: int) -> Iterator[bool]:
        if not self.file or self.file in _ALONE:
            yield True
            return
        fds: list[int] = []
        deadline = time.monotonic() + _PATIENCE_S[kind]
        try:
            with suppress(OSError):  # the disk is full: what was graded so far is kept, and said
                for name in (f"{self.file}-gate", self.file):
                    fds.append(os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            # The gate first: a grader that wants to be alone holds it while the running ones finish.
            is_ours = len(fds) == 2 and all(_lock(fd, kind, deadline) for fd in fds)
            if kind == fcntl.LOCK_SH or not is_ours:
                for gate in fds[:1]:
                    fcntl.flock(gate, fcntl.LOCK_UN)
            if kind == fcntl.LOCK_EX:
                _ALONE.add(self.file)
            yield is_ours
        finally:
            if kind == fcntl.LOCK_EX:
                _ALONE.discard(self.file)
            for fd in fds:
                # A process that was forked meanwhile, such as a judge, has the descriptor, too: closing ours
                # would leave its lock, and a grader that wants to be alone would wait for nothing.
                with suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_UN)
                os.close(fd)


# The locks that this process holds alone.
_ALONE: set[str] = set()


def _lock(fd: int, kind: int, deadline: float) -> bool:
    """Wait for a lock; tell whether it came in time."""
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            # Polled, as flock itself has no timeout.
            time.sleep(_LOOK_S)
