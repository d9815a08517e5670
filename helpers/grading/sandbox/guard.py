"""Watch a sandbox's use of resources from outside, and end the sandbox if it exceeds a limit.

The kernel limits each process (`inside`), but only an outside observer can limit all processes together.
`LimitGuard` is a thread in the launcher's process, one for each sandbox.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from helpers.check_result import Outcome
from helpers.grading.sandbox.limits import Limits
from helpers.ranks.processes import end_process_tree, kill_process, process_tree

POLL_S = 0.05
# Folders of a sandbox whose files are kept in memory.
_MEMORY_FOLDERS = ("tmp", "dev/shm")


@dataclass(frozen=True)
class Exceeded:
    """A limit exceeded by a sandbox.

    Args:
        text: The limit in words.
        outcome: The outcome of the answer that ran in the sandbox.
        depends_on_machine: Whether other programs on this machine may have contributed to exceeding it.
    """

    text: str
    outcome: Outcome
    depends_on_machine: bool = False


class LimitGuard:
    """A thread that watches the processes below `first` until `close`, and ends them at a limit.

    `found` is the exceeded limit, or None.

    Args:
        enclosed: Whether `first` has a private network and /tmp, and all processes below `first` end with it.
        bounded: Whether a memory group (`cgroup`) already counts the kernel's memory for these processes.
    """

    def __init__(
        self, first: int, limits: Limits, enclosed: bool = True, bounded: bool = False
    ) -> None:
        self.first, self.limits, self.enclosed = first, limits, enclosed
        self.kernel_bytes = 0 if bounded else _kernel_bytes()
        self.found: Exceeded | None = None
        self.peak_bytes = 0
        self.cpu_s = 0.0
        """Processor time of all running and ended processes below `first`, as last measured."""
        self._ends_at = self._cpu_left_s = float("inf")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)
        self._thread.start()

    def end_after(self, wall_s: float, cpu_s: float) -> None:
        """End the sandbox after `wall_s` more seconds, or after `cpu_s` of processor time in all."""
        self._ends_at, self._cpu_left_s = time.monotonic() + wall_s, cpu_s

    def _watch(self) -> None:
        while not self._over.wait(POLL_S):
            # Check the time first, because it does not require reading the processes, which may take long if
            # there are many processes or memory areas.
            self.found = self._reason_by_time()
            with suppress(OSError):  # a process exited while being read; the next read will succeed
                self.found = self.found or self._reason_by_usage()
            if self.found:
                # In a process namespace all processes end with the first. Without a namespace, each process
                # has to be found.
                kill_process(self.first) if self.enclosed else end_process_tree(self.first)
                return

    def _reason_by_time(self) -> Exceeded | None:
        if time.monotonic() > self._ends_at:
            text = "its share of the time for all files of this learner is used up"
            return Exceeded(text, Outcome.TIMED_OUT, depends_on_machine=True)
        if self.cpu_s > self._cpu_left_s:
            text = "its share of the processor time for this file is used up"
            return Exceeded(text, Outcome.TIMED_OUT)
        return None

    def _reason_by_usage(self) -> Exceeded | None:
        limits, used, count = self.limits, 0, 0
        pids = list(process_tree(self.first))
        for pid in pids:
            memory, threads = _memory_and_threads(pid)
            used, count = used + memory, count + threads
        # The kernel takes long to compute shares of pages, so they are read only when they might matter.
        if used > limits.world_bytes:  # `used` counts pages shared by fork more than once
            used = sum(map(_proportional_bytes, pids))
        self.peak_bytes = max(self.peak_bytes, used)
        # Keep the largest sum: the time of a process that ended without being waited for is lost.
        self.cpu_s = max(self.cpu_s, sum(map(_cpu_s, pids)))
        if used > limits.world_bytes:
            text = f"all ranks together used more than {limits.world_bytes >> 20:,} MB"
            return Exceeded(text, Outcome.TOO_MUCH_MEMORY)
        if count > limits.processes:
            text = f"more than {limits.processes} processes and threads"
            return Exceeded(text, Outcome.TOO_MANY_PROCESSES)
        if self.enclosed and sockets_of(self.first) > limits.sockets:
            return Exceeded(f"more than {limits.sockets:,} sockets", Outcome.TOO_MANY_FILES)
        if self.enclosed and files_of(self.first) > limits.files:
            return Exceeded(f"more than {limits.files:,} files", Outcome.TOO_MANY_FILES)
        if self.kernel_bytes and _kernel_bytes() - self.kernel_bytes > limits.kernel_bytes:
            text = f"the kernel's own memory grew by more than {limits.kernel_bytes >> 20:,} MB"
            return Exceeded(text, Outcome.TOO_MUCH_MEMORY, depends_on_machine=True)
        return None

    def close(self) -> None:
        self._over.set()
        self._thread.join(5.0)


def read_threads(user: int) -> int:
    """Return the number of threads of a user on this machine."""
    count = 0
    # RLIMIT_NPROC counts the threads of a user, not those of a session.
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if path.stat().st_uid == user:
                count += len(os.listdir(path / "task"))
    return count


def sockets_of(pid: int) -> int:
    """Return the number of sockets in a process's network; their memory is not attributed to a process."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/net/sockstat").read_text(encoding="utf-8").split()[2])
    return 0


def files_of(pid: int) -> int:
    """Return the number of a sandbox's files in memory, or 0 if this user may not read the number."""
    count = 0
    for folder in _MEMORY_FOLDERS:
        with suppress(OSError):
            told = os.statvfs(Path("/proc", str(pid), "root", folder))
            count += told.f_files - told.f_ffree
    return count


def _kernel_bytes() -> int:
    """Return the number of bytes that this machine's kernel uses and cannot reclaim."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("SUnreclaim:"):
                return int(line.split()[1]) << 10
    return 0


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and of those children that it has waited for."""
    with suppress(OSError, ValueError, IndexError):
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        # Fields after the name, which may contain spaces: utime, stime, cutime, cstime (proc(5)).
        return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _proportional_bytes(pid: int) -> int:
    """Return the bytes of a process. Shared bytes are divided by the number of processes that share them."""
    used = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                used += int(line.split()[1]) << 10
    except (OSError, ValueError):  # the process has exited, or this user may not read it
        return _memory_and_threads(pid)[0]
    return used


def _memory_and_threads(pid: int) -> tuple[int, int]:
    """Return a process's bytes (anonymous, shared, page tables) and its number of threads."""
    found = {"RssAnon": 0, "RssShmem": 0, "VmPTE": 0, "Threads": 0}
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0])
    threads = found.pop("Threads")
    return sum(found.values()) << 10, threads
