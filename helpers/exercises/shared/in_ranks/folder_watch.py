"""Watch the files of a folder through the kernel: see inotify(7).

A process that runs an answer cannot be trusted to report its written files: `os.open`, a C library or a
child process bypasses any Python function that a check replaces. The kernel sees all writes. Monitors use
this in the process that starts the workers and never runs an answer.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_MODIFY, _CLOSE_WRITE = 0x2, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_ALL_EVENTS = _MODIFY | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT_HEADER = struct.Struct("iIII")
_READ_BYTES, _MAX_READS = 1 << 16, 64
# Limits that no right answer reaches, because a hostile answer must not keep this process busy.
_MAX_FOLDERS = 1000


@dataclass
class Changes:
    """The changes to the files of a folder and its subfolders.

    names: the names of created, changed, or renamed files. closed: the number of times that a file open for
    writing was closed. overflowed: whether there were too many events to record.
    """

    names: set[str] = field(default_factory=set)
    closed: int = 0
    moved: int = 0
    deleted: int = 0
    overflowed: bool = False

    def as_plain(self) -> dict[str, Any]:
        """Return the changes as plain data."""
        return {**asdict(self), "names": sorted(self.names)}


class FolderWatch:
    """One inotify instance. Raises OSError if this user may not create another instance."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "no more folders can be watched (inotify)")
        self._root = folder
        self._folders: dict[int, Path] = {}
        self._changes = Changes()
        self._add(folder)

    def peek_changes(self) -> Changes:
        """Return the changes since the last call of `take_changes`.

        Later events are added to the same object.
        """
        for _ in range(_MAX_READS):
            try:
                data = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                break
            self._read(data)
        else:  # a process left behind by the answer writes as fast as this one reads
            self._changes.overflowed = True
        return self._changes

    def take_changes(self) -> Changes:
        """Return the changes since the last call of `take_changes`, and start over."""
        changes, self._changes = self.peek_changes(), Changes()
        return changes

    def close(self) -> None:
        os.close(self.fd)

    def _add(self, folder: Path) -> None:
        watch = self._libc.inotify_add_watch(self.fd, os.fsencode(folder), _ALL_EVENTS)
        if watch < 0:
            # All processes of a user share a limited number of watches, so another program may have taken
            # them all. In that case raise an error, because an empty result would mean that there were no
            # changes.
            if (code := ctypes.get_errno()) in {errno.ENOSPC, errno.ENOMEM}:
                raise OSError(code, "no more folders can be watched (inotify)")
            return  # the folder is already gone
        self._folders[watch] = folder
        if len(self._folders) > _MAX_FOLDERS:
            self._changes.overflowed = True
            return
        # No event reports files made in a new folder before it was watched.
        with suppress(OSError):  # the answer may remove it at any moment
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    self._add(path)
                elif folder is not self._root:
                    self._changes.names.add(path.name)

    def _read(self, data: bytes) -> None:
        start = 0
        while start < len(data):
            watch, what, _, length = _EVENT_HEADER.unpack_from(data, start)
            start += _EVENT_HEADER.size
            name = data[start : start + length].rstrip(b"\0").decode("utf-8", "replace")
            start += length
            lost = what & _IGNORED and self._folders.get(watch) is self._root
            # otherwise a removed and recreated folder would not be watched
            if what & _OVERFLOW or lost:
                self._changes.overflowed = True
            elif watch in self._folders:
                self._apply_event(self._folders[watch] / name, what)

    def _apply_event(self, path: Path, what: int) -> None:
        if what & _IS_FOLDER:
            if what & (_CREATE | _MOVED_TO):
                self._add(path)
            return
        if what & (_MODIFY | _CREATE | _MOVED_TO):
            self._changes.names.add(path.name)
        self._changes.closed += bool(what & _CLOSE_WRITE)
        self._changes.moved += bool(what & _MOVED_TO)
        self._changes.deleted += bool(what & _DELETE)


@contextmanager
def watch_folder(folder: Path) -> Iterator[FolderWatch]:
    """Watch a folder, creating it if necessary."""
    folder.mkdir(exist_ok=True)
    watch = FolderWatch(folder)
    try:
        yield watch
    finally:
        watch.close()
