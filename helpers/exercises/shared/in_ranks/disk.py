"""Report a process's changes to the files of a folder to the job's monitor, event by event."""

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

OPENED, HALF_WRITTEN, SYNCED = "a file opened", "half a file", "a file synced"
OLD_NAME, NEW_NAME, REMOVED = "the old name", "a new name", "a file removed"
EVENTS = (OPENED, HALF_WRITTEN, SYNCED, OLD_NAME, NEW_NAME, REMOVED)
_WATCHED = (builtins, io, mmap, os, shutil, torch)


@dataclass
class DiskReporter:
    """Reports each event, such as a half-written file, to the monitor, which may kill this process.

    count_steps, count_saves: functions that return the numbers of finished steps and of begun saves.
    read_files: the files opened for reading. Files outside the folder are treated as if on a different disk,
    as in a cluster.

    The reports allow kills at critical moments. They prove nothing, because an answer can bypass this class.
    So the monitor compares them with the kernel's events in the folder.
    """

    folder: Path
    count_steps: Callable[[], int]
    count_saves: Callable[[], int]
    read_files: list[str] = field(default_factory=list)
    _real: list[tuple[ModuleType, dict[str, Any]]] = field(default_factory=list)

    def start(self) -> None:
        """Watch every function that writes, syncs, renames or removes files, until `stop`."""
        self._real = [(owner, vars(owner).copy()) for owner in _WATCHED]
        torch.save = self._wrap_save(torch.save, io.open)
        # os.fdopen and tempfile also call this function
        builtins.open = io.open = self._wrap_open(io.open)
        os.fsync = self._wrap_sync(os.fsync)
        self._watch_descriptors()
        for name in ("rename", "replace", "link", "symlink"):
            setattr(os, name, self._wrap_move(getattr(os, name)))
        for name in ("remove", "unlink"):
            setattr(os, name, self._report_after(getattr(os, name), 0, REMOVED))
        shutil.copyfile = self._report_after(shutil.copyfile, 1, OPENED, HALF_WRITTEN)

    def stop(self) -> None:
        """Restore the functions replaced by `start`, except those that the answer has replaced since then."""
        for owner, real in self._real:
            for name, value in vars(owner).copy().items():
                if value is not real.get(name, value):
                    setattr(owner, name, real[name])

    def _watch_descriptors(self) -> None:
        """Watch files written without a file object: by descriptor, or mapped into memory."""
        real_open, real_map = os.open, mmap.mmap

        def open_descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            fd = real_open(path, flags, *args, **kwargs)
            if flags & (os.O_WRONLY | os.O_RDWR) and self._is_inside(
                where := _path_of_descriptor(fd)
            ):
                self._report_event(OPENED, where)
            return fd

        def wrap_write(real: Callable[..., Any]) -> Callable[..., Any]:
            def write(fd: int, *args: Any, **kwargs: Any) -> Any:
                done = real(fd, *args, **kwargs)
                if self._is_inside(where := _path_of_descriptor(fd)):
                    self._report_event(HALF_WRITTEN, where)
                return done

            return write

        for name in ("write", "pwrite", "writev", "pwritev", "sendfile", "ftruncate"):
            setattr(os, name, wrap_write(getattr(os, name)))

        class Map(real_map):  # type: ignore[misc, valid-type]
            def __new__(cls, fd: int, *args: Any, **kwargs: Any) -> Any:
                if fd >= 0 and self._is_inside(where := _path_of_descriptor(fd)):
                    self._report_event(HALF_WRITTEN, where)
                return real_map(fd, *args, **kwargs)

        os.open, mmap.mmap = open_descriptor, Map  # type: ignore[misc, assignment]

    def _is_inside(self, path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and Path(path).resolve().is_relative_to(
            self.folder
        )

    def _report_event(self, what: str, path: Any) -> None:
        """Report an event. The monitor may kill this process because of it, which leaves half of the file."""
        where = Path(path)
        # if an event concerns the name of a link, it is about the link, not about the file that the link
        # refers to
        named = what in (OLD_NAME, NEW_NAME, REMOVED)
        where = where.parent.resolve() / where.name if named else where.resolve()
        ask("event", what, str(where), self.count_steps(), self.count_saves())

    def _wrap_save(
        self, real: Callable[..., None], real_open: Callable[..., Any]
    ) -> Callable[..., None]:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(f):
                return real(obj, f, *args, **kwargs)
            real_open(f, "wb").close()  # torch's C++ code opens files in the same way
            self._report_event(OPENED, f)
            real(obj, f, *args, **kwargs)
            self._report_event(HALF_WRITTEN, f)

        return save

    def _wrap_open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            found = real(file, mode, *args, **kwargs)
            path = os.readlink(f"/proc/self/fd/{found.fileno()}")
            if self._is_inside(path) and not set(mode) & set("wax+"):
                self.read_files.append(path)
            elif self._is_inside(path):
                self._report_event(OPENED, path)
                self._watch_flushes(found, path)
            return found

        return opened

    def _watch_flushes(self, file: Any, path: str) -> None:
        """Allow a kill halfway through each flush of a file that is open for writing."""
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
                self._report_event(HALF_WRITTEN, path)

        def closing() -> None:
            if not file.closed:
                flushing()
            close()

        # A `with` block also calls close
        file.write, file.flush, file.close = writing, flushing, closing

    def _wrap_sync(self, real: Callable[..., None]) -> Callable[..., None]:
        def sync(fd: Any) -> None:
            real(fd)
            number = fd if isinstance(fd, int) else fd.fileno()
            if self._is_inside(where := _path_of_descriptor(number)) and not os.path.isdir(where):
                self._report_event(SYNCED, where)

        return sync

    def _wrap_move(self, real: Callable[..., None]) -> Callable[..., None]:
        def move(old: Any, new: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(new):
                return real(old, new, *args, **kwargs)
            if real.__name__ != "symlink" and not self._is_inside(old):
                raise OSError(errno.EXDEV, "Invalid cross-device link", str(old), None, str(new))
            if real.__name__ != "symlink":
                self._report_event(OLD_NAME, old)
            real(old, new, *args, **kwargs)
            self._report_event(NEW_NAME, new)

        return move

    def _report_after(self, real: Callable[..., Any], at: int, *events: str) -> Callable[..., Any]:
        """Return a function that calls `real`, then reports these events of the path in argument `at`."""

        def call(*args: Any, **kwargs: Any) -> Any:
            found = real(*args, **kwargs)
            path = [*args, *kwargs.values()][at]
            for what in events if self._is_inside(path) else ():
                self._report_event(what, path)
            return found

        return call


def _path_of_descriptor(fd: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}")
    return ""
