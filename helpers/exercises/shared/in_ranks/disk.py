"""Report to the job's monitor what a process does to the files of a folder, event by event."""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import mmap
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from helpers.checks.script_worker import ask

OPENED, HALF, SYNCED = "a file opened", "half a file", "a file synced"
OLD_NAME, NEW_NAME, REMOVED = "the old name", "a new name", "a file removed"
EVENTS = (OPENED, HALF, SYNCED, OLD_NAME, NEW_NAME, REMOVED)
_WATCHED = (builtins, io, mmap, os, shutil, torch)


@dataclass
class Disk:
    """Reports each event, such as a half-written file, to the monitor, which may kill this process.

    done: returns the steps done so far; save: the saves begun so far. read: the files that were opened for
    reading. Files outside the folder are treated as on a different disk, as in a cluster.

    The reports allow kills at the moments that matter. They prove nothing, because an answer can bypass
    this class. So the monitor compares them with what the kernel saw in the folder.
    """

    folder: Path
    done: Callable[[], int]
    save: Callable[[], int]
    read: list[str] = field(default_factory=list)
    _real: list[tuple[ModuleType, dict[str, Any]]] = field(default_factory=list)

    def watch(self) -> None:
        """Watch every function that writes, syncs, renames or removes files, until `leave`."""
        self._real = [(owner, vars(owner).copy()) for owner in _WATCHED]
        torch.save = self._saving(torch.save, io.open)
        # os.fdopen and tempfile call this function, too
        builtins.open = io.open = self._opening(io.open)
        os.fsync = self._syncing(os.fsync)
        self._watch_descriptors()
        for name in ("rename", "replace", "link", "symlink"):
            setattr(os, name, self._moving(getattr(os, name)))
        for name in ("remove", "unlink"):
            setattr(os, name, self._report_after(getattr(os, name), 0, REMOVED))
        shutil.copyfile = self._report_after(shutil.copyfile, 1, OPENED, HALF)

    def leave(self) -> None:
        """Restore the functions that `watch` replaced, except those that the answer has replaced since."""
        for owner, real in self._real:
            for name, value in vars(owner).copy().items():
                if value is not real.get(name, value):
                    setattr(owner, name, real[name])

    def _watch_descriptors(self) -> None:
        """Watch files that are written without a file object: by their descriptor, or mapped into memory."""
        real_open, real_map = os.open, mmap.mmap

        def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            fd = real_open(path, flags, *args, **kwargs)
            if flags & (os.O_WRONLY | os.O_RDWR) and self._is_inside(where := _path_of(fd)):
                self._happens(OPENED, where)
            return fd

        def writing(real: Callable[..., Any]) -> Callable[..., Any]:
            def write(fd: int, *args: Any, **kwargs: Any) -> Any:
                done = real(fd, *args, **kwargs)
                if self._is_inside(where := _path_of(fd)):
                    self._happens(HALF, where)
                return done

            return write

        for name in ("write", "pwrite", "writev", "pwritev", "sendfile", "ftruncate"):
            setattr(os, name, writing(getattr(os, name)))

        class Map(real_map):  # type: ignore[misc, valid-type]
            def __new__(cls, fd: int, *args: Any, **kwargs: Any) -> Any:
                if fd >= 0 and self._is_inside(where := _path_of(fd)):
                    self._happens(HALF, where)
                return real_map(fd, *args, **kwargs)

        os.open, mmap.mmap = opened, Map  # type: ignore[misc, assignment]

    def _is_inside(self, path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and Path(path).resolve().is_relative_to(
            self.folder
        )

    def _happens(self, what: str, path: Any) -> None:
        """Report an event. The monitor may kill this process because of it, which leaves half of the file."""
        where = Path(path)
        # if an event concerns the name of a link, it is about the link itself, not the file that it
        # leads to
        named = what in (OLD_NAME, NEW_NAME, REMOVED)
        where = where.parent.resolve() / where.name if named else where.resolve()
        ask("event", what, str(where), self.done(), self.save())

    def _saving(
        self, real: Callable[..., None], real_open: Callable[..., Any]
    ) -> Callable[..., None]:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(f):
                return real(obj, f, *args, **kwargs)
            real_open(f, "wb").close()  # torch's C++ code opens files in the same way
            self._happens(OPENED, f)
            real(obj, f, *args, **kwargs)
            self._happens(HALF, f)

        return save

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            found = real(file, mode, *args, **kwargs)
            path = os.readlink(f"/proc/self/fd/{found.fileno()}")
            if self._is_inside(path) and not set(mode) & set("wax+"):
                self.read.append(path)
            elif self._is_inside(path):
                self._happens(OPENED, path)
                self._follow(found, path)
            return found

        return opened

    def _follow(self, file: Any, path: str) -> None:
        """Allow a kill half-way through each flush of a file that is open for writing."""
        write, flush, close, new = file.write, file.flush, file.close, False

        def writing(data: Any) -> Any:
            nonlocal new
            new = True
            return write(data)

        def flushing() -> None:
            nonlocal new
            flush()
            if new:
                new = False
                self._happens(HALF, path)

        def closing() -> None:
            if not file.closed:
                flushing()
            close()

        # A `with` block calls close, too
        file.write, file.flush, file.close = writing, flushing, closing

    def _syncing(self, real: Callable[..., None]) -> Callable[..., None]:
        def sync(fd: Any) -> None:
            real(fd)
            number = fd if isinstance(fd, int) else fd.fileno()
            if self._is_inside(where := _path_of(number)) and not os.path.isdir(where):
                self._happens(SYNCED, where)

        return sync

    def _moving(self, real: Callable[..., None]) -> Callable[..., None]:
        def move(old: Any, new: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(new):
                return real(old, new, *args, **kwargs)
            if real.__name__ != "symlink" and not self._is_inside(old):
                raise OSError(errno.EXDEV, "Invalid cross-device link", str(old), None, str(new))
            if real.__name__ != "symlink":
                self._happens(OLD_NAME, old)
            real(old, new, *args, **kwargs)
            self._happens(NEW_NAME, new)

        return move

    def _report_after(self, real: Callable[..., Any], at: int, *events: str) -> Callable[..., Any]:
        """Return a function that calls `real`, then reports these events of the path in argument `at`."""

        def call(*args: Any, **kwargs: Any) -> Any:
            found = real(*args, **kwargs)
            path = [*args, *kwargs.values()][at]
            for what in events if self._is_inside(path) else ():
                self._happens(what, path)
            return found

        return call


def _path_of(fd: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}")
    return ""
