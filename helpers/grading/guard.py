"""Watches from outside what a sandbox uses, and ends it when that is too much.

The kernel keeps the limits of each process (`inside`); of all of them together only somebody outside
has the view. `Guard` is a thread beside the launcher, one for each sandbox.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from helpers.grading.limits import Limits

LOOK_S = 0.05


class Guard:
    """Looks at the processes below `first` until `close`; then `found` says what was too much, or ""."""

    def __init__(self, first: int, limits: Limits) -> None:
        self.first, self.limits = first, limits
        self.found = ""
        self.peak_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            used, count = 0, 0
            for pid in family(self.first):
                memory, threads = _memory_and_threads(pid)
                used, count = used + memory, count + threads
            self.peak_bytes = max(self.peak_bytes, used)
            if used > self.limits.world_bytes:
                self.found = (
                    f"all ranks together used more than {self.limits.world_bytes >> 20:,} MB"
                )
            elif count > self.limits.processes:
                self.found = f"more than {self.limits.processes} processes and threads"
            if self.found:
                with suppress(ProcessLookupError):
                    os.kill(self.first, signal.SIGKILL)  # the first within: all others go with it
                return

    def close(self) -> None:
        self._over.set()
        self._thread.join(5.0)


def family(pid: int) -> Iterator[int]:
    """Give a process and all that descend from it."""
    todo, seen = [pid], set()
    while todo:
        pid = todo.pop()
        if pid in seen:
            continue
        seen.add(pid)
        yield pid
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError, ValueError):
                todo += [int(word) for word in path.read_text().split()]


def _memory_and_threads(pid: int) -> tuple[int, int]:
    """Give the bytes that are a process's own (anonymous, or shared memory), and its threads."""
    found = {"RssAnon": 0, "RssShmem": 0, "Threads": 0}
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0])
    return (found["RssAnon"] + found["RssShmem"]) << 10, found["Threads"]
