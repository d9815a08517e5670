"""What a sandbox as a whole gets of memory and of the processor, kept by the kernel: control groups.

A memory group counts what no process shows as its own, too: tables of pages and of memory areas, pipes,
files in memory. A cpu group gets the same share as any other, however many processes or sessions are in it.
(Without one each session has a share of its own, as the kernel groups by session: hundreds of sessions that
spin would leave their neighbors next to nothing. See sched(7), "The autogroup feature".)

`walls.Sandbox` puts each rank server into groups of its own. Where none can be had (no cgroup file system, or
not ours to write to), the results say so, and `guard` looks at what the kernel tells of the whole machine.

Version 2 (docs.kernel.org/admin-guide/cgroup-v2.html) wants groups beside that of the process that makes
them, as a group with processes has no limits for its children; version 1 takes them anywhere, and has one
tree for memory and another one for the processor.
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


class Group:
    """Processes that the kernel counts together. Make one with `put_into_group`.

    folders: by what is counted there: "memory", "cpu". In version 2 both are the same.
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
                words = (self.folders["memory"] / name).read_text().split()
                return int(words[words.index("oom_kill") + 1]) > 0
        return False

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
                except OSError:  # the last one is still on its way out
                    time.sleep(0.01)


def put_into_group(pid: int, most_bytes: int) -> Group | None:
    """Put a process, and all that it will start, into new groups; None where that cannot be done."""
    name = f"real-ranks-{os.getpid()}-{next(_numbers)}"
    folders: dict[str, Path] = {}
    for kind in ("memory", "cpu"):
        parent = _place(kind)
        if folders and _is_v2() and parent != folders["memory"].parent:
            continue  # in version 2 a process is in one group: the second would take it out of the first
        if parent is not None and _made(parent / name, kind, most_bytes, pid):
            folders[kind] = parent / name
    return Group(folders) if folders else None


def _made(folder: Path, kind: str, most_bytes: int, pid: int) -> bool:
    try:
        folder.mkdir(exist_ok=True)
        _limit(folder, kind, most_bytes)
        (folder / "cgroup.procs").write_text(str(pid))
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        return False
    return True


def can_bound(kind: str) -> bool:
    """Whether groups of a kind, "memory" or "cpu", can be had here."""
    return _place(kind) is not None


def _is_v2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


@cache
def _place(kind: str) -> Path | None:
    """Find where groups of a kind can be made: try it with an empty one."""
    for parent in _candidates(kind):
        trial = parent / f"real-ranks-{os.getpid()}-trial"
        try:
            trial.mkdir()
        except OSError:
            continue
        try:
            _limit(trial, kind, 1 << 30)
            return parent
        except OSError:
            continue
        finally:
            with suppress(OSError):
                trial.rmdir()
    return None


def _candidates(kind: str) -> Iterator[Path]:
    own: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if _is_v2() and "" in own:
        mine = _ROOT / own[""]
        yield from (mine.parent, mine) if mine != _ROOT else (mine,)
    if kind in own:
        yield from (_ROOT / kind / own[kind], _ROOT / kind)


def _limit(folder: Path, kind: str, most_bytes: int) -> None:
    """Raise OSError where the group counts nothing of this kind. Its share of the processor is the usual."""
    if kind == "cpu":
        if not any((folder / name).exists() for name in ("cpu.weight", "cpu.shares")):
            raise OSError("no cpu controller")
        return
    if (folder / "memory.max").exists():
        (folder / "memory.max").write_text(str(most_bytes))
        with suppress(OSError):  # a kernel without swap accounting
            (folder / "memory.swap.max").write_text("0")
        return
    with open(folder / "memory.limit_in_bytes", "r+") as file:
        file.write(str(most_bytes))
