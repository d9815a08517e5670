"""Limit a sandbox's memory, processor time and processes with the kernel's control groups.

A memory group also counts memory that is not attributed to a process: page tables, memory areas, pipes, files
in memory. A cpu group receives the same share as any other group, no matter how many processes or sessions it
contains. Without cpu groups the kernel gives each session an equal share, so hundreds of busy sessions would
leave almost no time for their neighbors (see "The autogroup feature" in sched(7)). Unlike RLIMIT_NPROC, a
pids group also limits root, and does not count the user's processes outside the sandbox.

`levels.Sandbox` puts each rank server into new groups. If groups are not available (no cgroup file system, or
no permission to write to it), the results mention this, and `guard` uses the kernel's figures for the whole
machine.

In version 2 (docs.kernel.org/admin-guide/cgroup-v2.html) the groups must be siblings of the creating
process's group, because a group that contains processes cannot limit its children. In version 1 they may be
anywhere, but each kind has a separate tree.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from helpers.ranks.processes import kill_process

_ROOT = Path("/sys/fs/cgroup")
KINDS = ("memory", "cpu", "pids")
_NAME = "real-ranks-"
_REMOVAL_TIMEOUT_S = 2.0
# Minimum age in seconds of a group to be removed if its owner is not visible: the owner may be in a different
# process namespace, about to put a process into the group.
_STALE_S = 60.0
# Number of processes allowed beyond the limit, so that `guard` sees the excess and can report it.
_EXTRA_PROCESSES = 100
# Limit, in bytes or processes, of a group made only for testing. The kernel would refuse a limit of more
# processes than it has ids.
_TRIAL_BYTES = 1 << 22
_numbers = itertools.count()


class ProcessGroups:
    """A group of processes that the kernel counts together. Create a group with `put_into_group`.

    folders: a folder for each counted kind of `KINDS`. In version 2 all kinds have the same folder.
    """

    def __init__(self, folders: dict[str, Path]) -> None:
        self.folders = folders

    @property
    def bounds_memory(self) -> bool:
        return "memory" in self.folders

    @property
    def killed(self) -> bool:
        """Whether the kernel has killed one of the group's processes because the group reached its limit."""
        for name in ("memory.events", "memory.oom_control") if self.bounds_memory else ():
            with suppress(OSError, ValueError):
                words = (self.folders["memory"] / name).read_text(encoding="utf-8").split()
                return int(words[words.index("oom_kill") + 1]) > 0
        return False

    def end(self) -> None:
        """Kill all processes in the group, including processes that have left their session."""
        folder = next(iter(self.folders.values()))
        # If processes fork faster than the list is read, some are missing from the list, but they are still
        # in the group.
        with suppress(OSError):  # version 2 kills them all in one step
            (folder / "cgroup.kill").write_text("1", encoding="utf-8")
            return
        with suppress(OSError, KeyError):  # no process may fork while we read the list
            (self.folders["pids"] / "pids.max").write_text("0", encoding="utf-8")
        deadline = time.monotonic() + _REMOVAL_TIMEOUT_S
        with suppress(OSError, ValueError):
            while time.monotonic() < deadline:
                # a killed process remains in the list while its memory is being freed
                for pid in (pids := (folder / "cgroup.procs").read_text(encoding="utf-8").split()):
                    kill_process(int(pid))
                if not pids:
                    return
                time.sleep(0.002)

    def close(self) -> None:
        """Remove the group's folders once its processes have exited."""
        deadline = time.monotonic() + _REMOVAL_TIMEOUT_S
        for folder in set(self.folders.values()):
            while time.monotonic() < deadline:
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:  # the last process is still exiting
                    time.sleep(0.01)


def put_into_group(pid: int, max_bytes: int, max_processes: int) -> ProcessGroups | None:
    """Move a process into new groups, which its future children join. Return None if that fails."""
    name = f"{_NAME}{os.getpid()}-{next(_numbers)}"
    folders: dict[str, Path] = {}
    for kind in KINDS:
        parent = _find_parent(kind)
        if folders and _is_v2() and parent != next(iter(folders.values())).parent:
            # in version 2 a process belongs to only one group, so a second group would remove it from the
            # first
            continue
        most = max_bytes if kind == "memory" else max_processes + _EXTRA_PROCESSES
        if parent is not None and _make_group(parent / name, kind, most, pid):
            folders[kind] = parent / name
    return ProcessGroups(folders) if folders else None


def _make_group(folder: Path, kind: str, limit: int, pid: int) -> bool:
    try:
        folder.mkdir(exist_ok=True)
        _set_limit(folder, kind, limit)
        (folder / "cgroup.procs").write_text(str(pid), encoding="utf-8")
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        return False
    return True


def can_bound(kind: str) -> bool:
    """Return whether groups of this kind, one of `KINDS`, are available here."""
    return _find_parent(kind) is not None


def _is_v2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


@cache
def _find_parent(kind: str) -> Path | None:
    """Return the folder in which to create groups of this kind, after testing it with an idle process."""
    for parent in _candidates(kind):
        trial = parent / f"{_NAME}{os.getpid()}-trial"
        # a user who may make a group may still not be allowed to move a process into it
        with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
            works = _make_group(trial, kind, _TRIAL_BYTES, child.pid)
            child.kill()
        if works:
            ProcessGroups({kind: trial}).close()
            _remove_stale(parent)
            return parent
    return None


def _remove_stale(parent: Path) -> None:
    """Remove empty groups whose owners were killed before they could remove them."""
    for folder in parent.glob(f"{_NAME}*-*"):
        owner = folder.name.removeprefix(_NAME).partition("-")[0]
        if not owner.isdigit() or Path("/proc", owner).exists():
            continue
        with suppress(OSError):  # the group was removed meanwhile, or has processes
            if time.time() - folder.stat().st_ctime > _STALE_S:
                folder.rmdir()


def _candidates(kind: str) -> Iterator[Path]:
    own: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            own |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if _is_v2() and "" in own:
        mine = _ROOT / own[""]
        # Try a sibling of our own group first: in version 2 a group with processes cannot limit its children.
        yield from (mine.parent, mine) if mine != _ROOT else (mine,)
    if kind in own:
        yield from (_ROOT / kind / own[kind], _ROOT / kind)


def _set_limit(folder: Path, kind: str, limit: int) -> None:
    """Set a group's limit; cpu groups keep their default share. Raise OSError if it lacks the controller."""
    if kind == "cpu":
        if not any((folder / name).exists() for name in ("cpu.weight", "cpu.shares")):
            raise OSError("no cpu controller")
        return
    names = ("pids.max",) if kind == "pids" else ("memory.max", "memory.limit_in_bytes")
    file = next((path for path in (folder / name for name in names) if path.exists()), None)
    if file is None:
        raise OSError(f"no {kind} controller")
    file.write_text(str(limit), encoding="utf-8")
    # Forbid swap. It does not count as memory, so an answer over the limit would become slow instead of being
    # killed.
    with suppress(OSError):  # the kernel has no swap accounting, or uses version 1
        if (swap := folder / "memory.swap.max").exists():
            swap.write_text("0", encoding="utf-8")
