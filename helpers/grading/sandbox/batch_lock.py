"""Run all graders of a batch at the same time, or one grader while the others wait.

An answer that was too slow while others were running is run again without other answers. The locks are file
locks (flock), which the kernel releases when a grader exits.

    shared:     gate, shared -> turn, shared -> leave the gate, run
    exclusive:  gate, exclusive -> turn, exclusive -> run

While a grader waits for the exclusive lock, no other grader passes the gate, so it waits only for graders
that are already running.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# Maximum waiting time of a grader, in seconds. For the exclusive lock, it is much longer than a set of cases
# takes. For the shared lock, it is the time for which another grader may wait for the exclusive lock and then
# run, because running next to that grader would spoil its timing.
_PATIENCE_S = {fcntl.LOCK_EX: 300.0, fcntl.LOCK_SH: 1800.0}
_POLL_S = 0.02


@dataclass(frozen=True)
class BatchLock:
    """The locks of a batch's graders. file: "" if only one grader exists."""

    file: str = ""

    @contextmanager
    def hold_shared(self) -> Iterator[bool]:
        """Run next to other graders while no grader has the exclusive lock. Yield False after a timeout."""
        with self._hold(fcntl.LOCK_SH) as is_ours:
            yield is_ours

    @contextmanager
    def hold_exclusive(self) -> Iterator[bool]:
        """Run while no other grader is running. Yield False if the others did not finish in time.

        Code inside the block may call `hold_shared`.
        """
        with self._hold(fcntl.LOCK_EX) as is_ours:
            yield is_ours

    @contextmanager
    def _hold(self, kind: int) -> Iterator[bool]:
        if not self.file or self.file in _FILES_HELD_ALONE:
            yield True
            return
        fds: list[int] = []
        deadline = time.monotonic() + _PATIENCE_S[kind]
        try:
            # the disk is full, so earlier results are kept, and the error is reported
            with suppress(OSError):
                for name in (f"{self.file}-gate", self.file):
                    fds.append(os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            # Lock the gate first: a grader that waits for the exclusive lock keeps the gate locked until
            # the graders that are already running have finished.
            is_ours = len(fds) == 2 and all(_lock(fd, kind, deadline) for fd in fds)
            if kind == fcntl.LOCK_SH or not is_ours:
                for gate in fds[:1]:
                    fcntl.flock(gate, fcntl.LOCK_UN)
            if kind == fcntl.LOCK_EX:
                _FILES_HELD_ALONE.add(self.file)
            yield is_ours
        finally:
            if kind == fcntl.LOCK_EX:
                _FILES_HELD_ALONE.discard(self.file)
            for fd in fds:
                # A process forked meanwhile, such as a judge, also has the descriptor. Closing only our
                # descriptor would keep the lock, and another grader would wait for nothing.
                with suppress(OSError):
                    fcntl.flock(fd, fcntl.LOCK_UN)
                os.close(fd)


# The locks that this process holds exclusively.
_FILES_HELD_ALONE: set[str] = set()


def _lock(fd: int, kind: int, deadline: float) -> bool:
    """Wait for a lock. Return whether it was acquired before the deadline."""
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            # Poll, because flock has no timeout.
            time.sleep(_POLL_S)
