"""A disk that kills: what a process does to the files of a folder is counted, and ends at one event."""

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
from typing import Any

import torch

from helpers.checks.script_worker import die
from helpers.exercises.nb19_checkpoints.in_ranks.lives import leave


@dataclass
class Disk:
    """Kills this process at one event of what it does to the files of a folder: half a file, a new name.

    last: the event, counted from 1; 0 for none. Left at the death: how many steps were `done`, and the event.
    counts: whether events count by now. written, read: the files that were opened. named: all files that got
    a name or content here. Files outside the folder are on another disk, as they are in a cluster.

    It is there to kill at moments that matter and to say which; it is no evidence, as an answer can go around
    it. What the kernel saw in the folder, and whether the death took place, is looked at by the judge.
    """

    folder: Path
    last: int
    written: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    read: list[str] = field(default_factory=list)
    done: Callable[[], int] = int
    counts: Callable[[], bool] = lambda: True
    _events: int = 0

    def watch(self) -> None:
        """Put this watch around everything that writes, syncs, renames or removes files."""
        torch.save = self._saving(torch.save, io.open)
        builtins.open = io.open = self._opening(io.open)  # os.fdopen and tempfile call it, too
        os.fsync = self._syncing(os.fsync)
        self._watch_descriptors()
        for name in ("rename", "replace", "link", "symlink"):
            setattr(os, name, self._moving(getattr(os, name)))
        for name in ("remove", "unlink"):
            setattr(os, name, self._removing(getattr(os, name)))
        shutil.copyfile = self._copying(shutil.copyfile)

    def _watch_descriptors(self) -> None:
        """Watch files that are written without a file object: by number, or as memory."""
        real_open, real_map = os.open, mmap.mmap

        def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            fd = real_open(path, flags, *args, **kwargs)
            if flags & (os.O_WRONLY | os.O_RDWR) and self._is_inside(where := _path_of(fd)):
                self._open_for_writing(where)
            return fd

        def writing(real: Callable[..., Any]) -> Callable[..., Any]:
            def write(fd: int, *args: Any, **kwargs: Any) -> Any:
                done = real(fd, *args, **kwargs)
                if self._is_inside(_path_of(fd)):
                    self._happens("half a file", fd)
                return done

            return write

        for name in ("write", "pwrite", "writev", "pwritev", "sendfile", "ftruncate"):
            setattr(os, name, writing(getattr(os, name)))

        class Map(real_map):  # type: ignore[misc, valid-type]
            def __new__(cls, fd: int, *args: Any, **kwargs: Any) -> Any:
                if fd >= 0 and self._is_inside(where := _path_of(fd)):
                    self.named.add(where)
                    self._happens("half a file", fd)
                return real_map(fd, *args, **kwargs)

        os.open, mmap.mmap = opened, Map  # type: ignore[misc, assignment]

    def _open_for_writing(self, path: str) -> None:
        self.written.append(path)
        self.named.add(path)
        self._happens("a file opened")

    def _is_inside(self, path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and Path(path).resolve().is_relative_to(
            self.folder
        )

    def _happens(self, what: str, file: int | Path | None = None) -> None:
        """Count an event, and die of it if it is the one. `file` is left half written, if it is given."""
        rank = os.environ["RANK"]
        leave(f"written by {rank}", sorted({Path(path).name for path in self.named}))
        leave(f"opened by {rank}", len(self.written))
        if not self.counts():
            return
        self._events += 1
        if self._events == self.last:
            if file is not None:
                os.truncate(file, os.stat(file).st_size // 2)
            leave("died", [self.done(), what])
            die()

    def _saving(
        self, real: Callable[..., None], real_open: Callable[..., Any]
    ) -> Callable[..., None]:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(f):
                return real(obj, f, *args, **kwargs)
            real_open(f, "wb").close()  # which is what torch begins with, in C++
            self._open_for_writing(str(f))
            real(obj, f, *args, **kwargs)
            self._happens("half a file", Path(f))

        return save

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            found = real(file, mode, *args, **kwargs)
            path = os.readlink(f"/proc/self/fd/{found.fileno()}")
            if self._is_inside(path) and not set(mode) & set("wax+"):
                self.read.append(path)
            elif self._is_inside(path):
                self._open_for_writing(path)
                self._follow(found)
            return found

        return opened

    def _follow(self, file: Any) -> None:
        """Have a file that is open for writing die half-way through what each flush hands on."""
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
                self._happens("half a file", file.fileno())

        def closing() -> None:
            if not file.closed:
                flushing()
            close()

        file.write, file.flush, file.close = writing, flushing, closing  # `with` calls close, too

    def _syncing(self, real: Callable[..., None]) -> Callable[..., None]:
        def sync(fd: Any) -> None:
            real(fd)
            number = fd if isinstance(fd, int) else fd.fileno()
            if self._is_inside(os.readlink(f"/proc/self/fd/{number}")):
                self._happens("a file synced")

        return sync

    def _moving(self, real: Callable[..., None]) -> Callable[..., None]:
        def move(old: Any, new: Any, *args: Any, **kwargs: Any) -> None:
            if not self._is_inside(new):
                return real(old, new, *args, **kwargs)
            if real.__name__ != "symlink" and not self._is_inside(old):
                raise OSError(errno.EXDEV, "Invalid cross-device link", str(old), None, str(new))
            self.named.add(str(new))
            self._happens("the old name")
            real(old, new, *args, **kwargs)
            self._happens("a new name")

        return move

    def _removing(self, real: Callable[..., None]) -> Callable[..., None]:
        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            real(path, *args, **kwargs)
            if self._is_inside(path):
                self._happens("a file removed")

        return remove

    def _copying(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def copy(old: Any, new: Any, **kwargs: Any) -> Any:
            real(old, new, **kwargs)
            if self._is_inside(new):
                self.written.append(str(new))
                self.named.add(str(new))
                self._happens("half a file", Path(new))
            return new

        return copy


def _path_of(fd: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}")
    return ""
