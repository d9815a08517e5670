"""What a sandbox gets of memory, processor and processes, kept by the kernel: control groups.

A memory group counts what no process shows as its own, too: tables of pages and of memory areas, pipes,
files in memory. A cpu group gets the same share as any other, however many processes or sessions are in it.
(Without one each session has a share of its own, as the kernel groups by session: hundreds of sessions that
spin would leave their neighbors next to nothing. See sched(7), "The autogroup feature".) A pids group holds
for root as well, whom RLIMIT_NPROC does not bind, and counts no neighbor of the same user.

`levels.Sandbox` puts each rank server into groups of its own. Where none is available (no cgroup file system,
or not ours to write to), the results say so, and `guard` looks at what the kernel tells of the whole machine.

Version 2 (docs.kernel.org/admin-guide/cgroup-v2.html) wants groups next to that of the process that makes
them, as a group with processes has no limits for its children; version 1 takes them anywhere, and has a tree
of its own for each kind.
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

from helpers.ranks.processes import end

_ROOT = Path("/sys/fs/cgroup")
KINDS = ("memory", "cpu", "pids")
_NAME = "real-ranks-"
_GONE_S = 2.0
# How old the group of a process that nobody sees must be to be removed: its owner may be in a
# namespace of process ids that is not ours, about to put somebody into it.
_STALE_S = 60.0
# Processes beyond the limit: this many may start before `guard` looks, which then says what was too
# much.
_ROOM = 100
# Bytes, or processes, of a group that is made to see whether it can be: more processes than any
# kernel has ids for would be refused.
_TRIAL = 1 << 22
_numbers = itertools.count()


class Group:
    """Processes that the kernel counts together. Make one with `put_into_group`.

    folders: by what is counted there, of `KINDS`. In version 2 all are the same.
    """

    def __init__(self, folders: dict[str, Path]) -> None:
        self.folders = folders

    @property
    def bounds_memory(self) -> bool:
        return "memory" in self.folders

    @property
    def killed(self) -> bool:
        """Whether the kernel has ended one of its processes, as the group had used all it may."""
        for name in ("memory.events", "memory.oom_control") if self.bounds_memory else ():
            with suppress(OSError, ValueError):
                words = (self.folders["memory"] / name).read_text(encoding="utf-8").split()
                return int(words[words.index("oom_kill") + 1]) > 0
        return False

    def end(self) -> None:
        """End all processes in it, also those that have left their session and lost their parents."""
        folder = next(iter(self.folders.values()))
        # A process that forks faster than a list of processes is read would escape; this cannot be escaped.
        with suppress(OSError):  # version 2 ends all at once
            (folder / "cgroup.kill").write_text("1", encoding="utf-8")
            return
        with suppress(OSError, KeyError):  # nobody may fork while we look through the list
            (self.folders["pids"] / "pids.max").write_text("0", encoding="utf-8")
        deadline = time.monotonic() + _GONE_S
        with suppress(OSError, ValueError):
            while time.monotonic() < deadline:
                # one that was ended stays in the list while it gives back its memory
                for pid in (pids := (folder / "cgroup.procs").read_text(encoding="utf-8").split()):
                    end(int(pid))
                if not pids:
                    return
                time.sleep(0.002)

    def close(self) -> None:
        """Remove it, once its processes have ended."""
        deadline = time.monotonic() + _GONE_S
        for folder in set(self.folders.values()):
            while time.monotonic() < deadline:
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:  # the last one is still exiting
                    time.sleep(0.01)


def put_into_group(pid: int, most_bytes: int, most_processes: int) -> Group | None:
    """Put a process, and all that it will start, into new groups; None where that cannot be done."""
    name = f"{_NAME}{os.getpid()}-{next(_numbers)}"
    folders: dict[str, Path] = {}
    for kind in KINDS:
        parent = _place(kind)
        if folders and _is_v2() and parent != next(iter(folders.values())).parent:
            continue  # in version 2 a process is in one group: the second would take it out of the first
        most = most_bytes if kind == "memory" else most_processes + _ROOM
        if parent is not None and _made(parent / name, kind, most, pid):
            folders[kind] = parent / name
    return Group(folders) if folders else None


def _made(folder: Path, kind: str, most: int, pid: int) -> bool:
    try:
        folder.mkdir(exist_ok=True)
        _limit(folder, kind, most)
        (folder / "cgroup.procs").write_text(str(pid), encoding="utf-8")
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        return False
    return True


def can_bound(kind: str) -> bool:
    """Whether groups of a kind, of `KINDS`, can be had here."""
    return _place(kind) is not None


def _is_v2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


@cache
def _place(kind: str) -> Path | None:
    """Find where groups of a kind can be made: try it with a process that does nothing."""
    for parent in _candidates(kind):
        trial = parent / f"{_NAME}{os.getpid()}-trial"
        # a user who may make a group may still not be allowed to put a process into it
        with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
            works = _made(trial, kind, _TRIAL, child.pid)
            child.kill()
        if works:
            Group({kind: trial}).close()
            _remove_stale(parent)
            return parent
    return None


def _remove_stale(parent: Path) -> None:
    """Remove the empty groups of processes that were killed before they could do so."""
    for folder in parent.glob(f"{_NAME}*-*"):
        owner = folder.name.removeprefix(_NAME).partition("-")[0]
        if not owner.isdigit() or Path("/proc", owner).exists():
            continue
        with suppress(OSError):  # it has gone, or somebody is in it
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
        # Next to our own group, as in version 2 a group that has processes cannot limit its children.
        yield from (mine.parent, mine) if mine != _ROOT else (mine,)
    if kind in own:
        yield from (_ROOT / kind / own[kind], _ROOT / kind)


def _limit(folder: Path, kind: str, most: int) -> None:
    """Raise OSError where the group counts nothing of this kind. Its share of the processor is the usual."""
    if kind == "cpu":
        if not any((folder / name).exists() for name in ("cpu.weight", "cpu.shares")):
            raise OSError("no cpu controller")
        return
    names = ("pids.max",) if kind == "pids" else ("memory.max", "memory.limit_in_bytes")
    file = next((path for path in (folder / name for name in names) if path.exists()), None)
    if file is None:
        raise OSError(f"no {kind} controller")
    file.write_text(str(most), encoding="utf-8")
    # Swapped memory does not count: the limit would slow an answer down instead of ending it.
    with suppress(OSError):  # a kernel without swap accounting, or version 1
        if (swap := folder / "memory.swap.max").exists():
            swap.write_text("0", encoding="utf-8")
