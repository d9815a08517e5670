"""Find, track and end processes and their descendants.

This module is used by all parts of the course that start processes: the rank server, the supervisor of jobs,
and the sandbox around both. It imports only the standard library, because the supervisor runs without any
other packages.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

NO_NEW_PRIVS, PR_SET_NAME = 38, 15
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
_ENDED = frozenset({"Z", "X", ""})
_TREE_TIMEOUT_S, _MIN_EMPTY_LOOKS = 10.0, 3
_TRACKER_TIMEOUT_S, _EXEC_TIMEOUT_S = 8.0, 0.5
# Load the library before any fork, because a new rank, or a program before its exec, must not load one.
_LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *arguments: Any) -> None:
    """Set an attribute of this process in the Linux kernel. Raise OSError if the kernel refuses."""
    words = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in (*arguments, 0, 0, 0, 0)[:4]]
    if _LIBC.prctl(option, *words):
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent ends (on Linux).

    This has no effect if the parent has already ended, and the kernel drops the setting when the process
    changes its user.
    """
    if sys.platform == "linux":
        prctl(_SET_DEATH_SIGNAL, number)


def adopt_orphans() -> None:
    """Become the parent of all descendants that lose their parent (on Linux), so that they can be killed."""
    if sys.platform == "linux":
        prctl(_SET_SUBREAPER, 1)


def read_proc_file(path: str) -> str:
    """Return the text of a file of /proc. `Path.read_text` takes several times as long."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts).decode("utf-8", "replace")


def children_of(pid: int) -> Iterator[int]:
    """Yield the ids of a process's children, including adopted ones; none if there is no /proc."""
    with suppress(OSError):  # The process may exit at any moment.
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError, ValueError):
                text = read_proc_file(f"/proc/{pid}/task/{task}/children")
                yield from (int(word) for word in text.split())


def living_children(pid: int) -> list[int]:
    """Return the ids of a process's running children, without zombies."""
    return [child for child in children_of(pid) if _state(child) not in _ENDED]


def _state(pid: int) -> str:
    with suppress(OSError, IndexError):
        return read_proc_file(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]
    return ""


def namespace_pid(pid: int) -> int:
    """Return a process's id inside its namespace; 0 if it has exited."""
    with suppress(OSError, ValueError):
        for line in read_proc_file(f"/proc/{pid}/status").splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def kill_process(pid: int) -> None:
    """Kill a process. If it is the first of its namespace, the kernel kills all others in the namespace."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_orphan(pid: int, spared_group: int = 0) -> None:
    """Kill an adopted child and its process group, unless it is this process's group or `spared_group`.

    The kernel signals a whole group at once, including a process that is being forked into it. Endlessly
    forking processes could fork faster than they could be killed one by one.
    """
    with suppress(ProcessLookupError, PermissionError):
        group = os.getpgid(pid)
        if group not in {os.getpgrp(), spared_group}:
            os.killpg(group, signal.SIGKILL)
    kill_process(pid)


def end_process_groups(leaders: Collection[int], other_leaders: Collection[int] = ()) -> None:
    """End groups of processes by their leaders, but first let shared-memory trackers finish.

    A process that creates named shared memory or semaphores starts a tracker in its group. This program of
    `multiprocessing`, or of joblib's loky, removes leftover objects when all its users have ended.

    Args:
        leaders: Present or recent children of this process.
        other_leaders: Children that lead other groups, which keep running.
    """
    members = _group_members(leaders, other_leaders)
    trackers = [pid for pid in members if pid not in leaders and _is_tracker(pid)]
    if os.getpid() == 1:  # Nothing outlives a sandbox, so nothing needs to be cleaned up.
        trackers = []
    tracked_groups = {members[pid] for pid in trackers}
    for leader in leaders:
        if leader not in tracked_groups:
            kill_group(leader)
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(
                leader, signal.SIGSTOP
            )  # A running leader could fork faster than its group's members are killed.
    for pid, group in _group_members(
        tracked_groups, {*leaders, *other_leaders} - tracked_groups
    ).items():
        if group in tracked_groups and pid not in trackers:
            kill_process(pid)
    for pid in trackers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + _TRACKER_TIMEOUT_S
    while any(_state(pid) not in _ENDED for pid in trackers) and time.monotonic() < deadline:
        time.sleep(0.005)
    for leader in tracked_groups:
        kill_group(leader)


def _group_members(leaders: Collection[int], other_leaders: Collection[int]) -> dict[int, int]:
    """Return the group of each descendant of these leaders and of each process adopted by this process."""
    if not leaders:
        return {}
    # Look in this order, because a leader that ends meanwhile leaves its children to this process.
    descendants = [pid for leader in leaders for pid in process_tree(leader)]
    adopted = [pid for pid in children_of(os.getpid()) if pid not in other_leaders]
    descendants += [pid for root in adopted for pid in process_tree(root)]
    groups = {pid: _group_of(pid) for pid in dict.fromkeys(descendants)}
    return {pid: group for pid, group in groups.items() if group in leaders}


def _group_of(pid: int) -> int:
    with suppress(OSError):
        return os.getpgid(pid)
    return 0


def _is_tracker(pid: int) -> bool:
    deadline = time.monotonic() + _EXEC_TIMEOUT_S
    with suppress(OSError):
        # In the middle of its exec, a process has no command line yet, and its rank may already have ended.
        while not (line := Path(f"/proc/{pid}/cmdline").read_bytes()):
            if _state(pid) in _ENDED or time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return b"resource_tracker import main" in line
    return False


def process_tree(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    todo, visited = [pid], set()
    while todo:
        pid = todo.pop()
        if pid in visited:
            continue
        visited.add(pid)
        yield pid
        todo += children_of(pid)


def end_process_tree(root: int) -> None:
    """End a process that adopts orphans, the leader of its group, and all its descendants.

    The process is stopped, not killed, until no descendant is left. Meanwhile orphans become its children, so
    they can be found; if it were dead, the machine's first process might adopt them. A single look can miss
    an endlessly forking process, so several consecutive looks must find nothing.
    """
    with suppress(ProcessLookupError):
        os.kill(root, signal.SIGSTOP)
    deadline, empty_looks = time.monotonic() + _TREE_TIMEOUT_S, 0
    while empty_looks < _MIN_EMPTY_LOOKS and time.monotonic() < deadline:
        descendants = [p for p in process_tree(root) if p != root and _state(p) not in _ENDED]
        for pid in descendants:
            kill_orphan(pid, spared_group=root)
        empty_looks = 0 if descendants else empty_looks + 1
        time.sleep(0.005)
    kill_group(root)


def kill_group(pid: int) -> None:
    """Kill a process and the whole group that it leads."""
    for kill in (os.killpg, os.kill):  # A new process has no group yet.
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
