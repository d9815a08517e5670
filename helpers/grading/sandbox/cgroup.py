"""A bound on the memory of a sandbox as a whole, kept by the kernel: a memory cgroup, where one can be had.

It counts what no process shows as its own, too: tables of pages and of memory areas, pipes, files in
memory. `walls.Sandbox` puts each rank server into a group of its own; where none can be had (no cgroup
file system, or not ours to write to), `guard` looks at what the kernel tells of the whole machine.

Version 2 (docs.kernel.org/admin-guide/cgroup-v2.html) wants groups beside that of the process that makes
them, as a group with processes has no limits for its children; version 1 takes them anywhere.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_GONE_S = 2.0
_numbers = itertools.count()


class MemoryGroup:
    """A group of processes that together may use so many bytes. Make one with `put_into_group`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def killed(self) -> bool:
        """Tell whether the kernel has ended one of its processes, as the group had used all it may."""
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError, ValueError):
                words = (self.folder / name).read_text().split()
                return int(words[words.index("oom_kill") + 1]) > 0
        return False

    def close(self) -> None:
        """Remove it, once its processes have ended."""
        deadline = time.monotonic() + _GONE_S
        while time.monotonic() < deadline:
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:  # the last one is still on its way out
                time.sleep(0.01)


def put_into_group(pid: int, most_bytes: int) -> MemoryGroup | None:
    """Put a process, and all that it will start, into a new group; None where that cannot be done."""
    parent = _place()
    if parent is None:
        return None
    folder = parent / f"real-ranks-{os.getpid()}-{next(_numbers)}"
    try:
        folder.mkdir()
    except OSError:
        return None
    try:
        _limit(folder, most_bytes)
        (folder / "cgroup.procs").write_text(str(pid))
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        return None
    return MemoryGroup(folder)


def can_bound() -> bool:
    """Tell whether groups can be had here."""
    return _place() is not None


@cache
def _place() -> Path | None:
    """Find where groups can be made: try it with an empty one."""
    for parent in _candidates():
        trial = parent / f"real-ranks-{os.getpid()}-trial"
        try:
            trial.mkdir()
        except OSError:
            continue
        try:
            _limit(trial, 1 << 30)
            return parent
        except OSError:
            continue
        finally:
            with suppress(OSError):
                trial.rmdir()
    return None


def _candidates() -> Iterator[Path]:
    own: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if (_ROOT / "cgroup.controllers").exists() and "" in own:
        mine = _ROOT / own[""]
        yield from (mine.parent, mine) if mine != _ROOT else (mine,)
    if "memory" in own:
        yield from (_ROOT / "memory" / own["memory"], _ROOT / "memory")


def _limit(folder: Path, most_bytes: int) -> None:
    """Raise OSError where the group counts no memory."""
    if (folder / "memory.max").exists():
        (folder / "memory.max").write_text(str(most_bytes))
        with suppress(OSError):  # a kernel without swap accounting
            (folder / "memory.swap.max").write_text("0")
        return
    with open(folder / "memory.limit_in_bytes", "r+") as file:
        file.write(str(most_bytes))
