"""Watches from outside what a sandbox uses, and ends it when that is too much.

The kernel keeps the limits of each process (`inside`); of all of them together only somebody outside
has the view. `Guard` is a thread next to the launcher, one for each sandbox.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from helpers.grading.sandbox.limits import Limits
from helpers.ranks.processes import end, end_family, family

LOOK_S = 0.05
# Folders of a sandbox whose files are in memory.
_ON_MEMORY = ("tmp", "dev/shm")


class Guard:
    """Looks at the processes below `first` until `close`; then `found` says what was too much, or "".

    enclosed: `first` has a network and a /tmp of its own, and all that is within ends with it. bounded: the
    kernel counts its own memory for them (`cgroup`).
    """

    def __init__(
        self, first: int, limits: Limits, enclosed: bool = True, bounded: bool = False
    ) -> None:
        self.first, self.limits, self.enclosed = first, limits, enclosed
        self.kernel_bytes = 0 if bounded else _kernel_bytes()
        self.found = ""
        self.peak_bytes = 0
        self.cpu_s = 0.0
        """Processor time of the family as last seen: of those that live, and of those that ended."""
        self.is_out_of_time = False
        self._ends_at = self._cpu_left_s = float("inf")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)
        self._thread.start()

    def end_after(self, wall_s: float, cpu_s: float) -> None:
        """End the sandbox when it lives for longer from now on, or uses more processor time in all."""
        self._ends_at, self._cpu_left_s = time.monotonic() + wall_s, cpu_s

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            # First what needs no look at the processes: with enough of them, or of their memory areas, that
            # look itself may take long.
            self.found = self._too_late()
            self.is_out_of_time = bool(self.found)
            with suppress(OSError):  # a process that went while one looked; the next look comes
                self.found = self.found or self._too_much()
            if self.found:
                # In a process namespace all end with the first; elsewhere each has to be found.
                end(self.first) if self.enclosed else end_family(self.first)
                return

    def _too_late(self) -> str:
        if time.monotonic() > self._ends_at:
            return "its share of the time for all files of this learner is used up"
        if self.cpu_s > self._cpu_left_s:
            return "its share of the processor time for this file is used up"
        return ""

    def _too_much(self) -> str:
        limits, used, count = self.limits, 0, 0
        pids = list(family(self.first))
        for pid in pids:
            memory, threads = _memory_and_threads(pid)
            used, count = used + memory, count + threads
        # The kernel takes long to compute shares of pages, so they are asked for only when it may matter.
        if used > limits.world_bytes:  # pages that fork shares were counted once for each process
            used = sum(map(_own_share, pids))
        self.peak_bytes = max(self.peak_bytes, used)
        # The largest sum so far: the time of a process that ended and was not waited for is lost.
        self.cpu_s = max(self.cpu_s, sum(map(_cpu_s, pids)))
        if used > limits.world_bytes:
            return f"all ranks together used more than {limits.world_bytes >> 20:,} MB"
        if count > limits.processes:
            return f"more than {limits.processes} processes and threads"
        if self.enclosed and sockets_of(self.first) > limits.sockets:
            return f"more than {limits.sockets:,} sockets"
        if self.enclosed and files_of(self.first) > limits.files:
            return f"more than {limits.files:,} files"
        if self.kernel_bytes and _kernel_bytes() - self.kernel_bytes > limits.kernel_bytes:
            return f"the kernel's own memory grew by more than {limits.kernel_bytes >> 20:,} MB"
        return ""

    def close(self) -> None:
        self._over.set()
        self._thread.join(5.0)


def threads_of(user: int) -> int:
    """Count the threads of a user on this machine."""
    count = 0
    # RLIMIT_NPROC counts threads, of a user and not of a session.
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if path.stat().st_uid == user:
                count += len(os.listdir(path / "task"))
    return count


def sockets_of(pid: int) -> int:
    """Count the sockets in a process's network: each can keep memory that no process shows."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/net/sockstat").read_text(encoding="utf-8").split()[2])
    return 0


def files_of(pid: int) -> int:
    """Count the files that a sandbox has in memory; 0 where this user may not look."""
    count = 0
    for folder in _ON_MEMORY:
        with suppress(OSError):
            told = os.statvfs(Path("/proc", str(pid), "root", folder))
            count += told.f_files - told.f_ffree
    return count


def _kernel_bytes() -> int:
    """Return what the kernel holds for all processes of this machine, and cannot give back."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("SUnreclaim:"):
                return int(line.split()[1]) << 10
    return 0


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and of its children that it has waited for."""
    with suppress(OSError, ValueError, IndexError):
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        # Counted from behind the name, which may contain spaces: utime, stime, cutime, cstime (proc(5)).
        return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _own_share(pid: int) -> int:
    """Return the bytes of a process, those that it shares divided by how many share them."""
    used = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                used += int(line.split()[1]) << 10
    except (OSError, ValueError):  # it has gone, or this user may not look
        return _memory_and_threads(pid)[0]
    return used


def _memory_and_threads(pid: int) -> tuple[int, int]:
    """Return the bytes that are a process's own (anonymous, shared, for page tables), and its threads."""
    found = {"RssAnon": 0, "RssShmem": 0, "VmPTE": 0, "Threads": 0}
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0])
    threads = found.pop("Threads")
    return sum(found.values()) << 10, threads
