"""Detect saved notebooks in a folder, from the start of the command.

This module is fast to import, because saves during the slow imports of `course watch` must also count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

POLL_S = 0.3
_START_ERROR_S = 1.0
"""The maximum delay between a process's real start and its reported start."""


@dataclass
class Saves:
    """The notebooks of a folder.

    stamps: each file's last detected state. first: each file's content at the start of the command. A
    notebook saved after the start, but before it could be read, has no first content.
    """

    folder: Path
    stamps: dict[Path, tuple[int, int]] = field(default_factory=dict)
    first: dict[Path, bytes] = field(default_factory=dict)

    @classmethod
    def since_start(cls, folder: Path) -> Saves:
        """Return the state of a folder at the start of this process."""
        saves = cls(folder)
        started_ns = int((psutil.Process().create_time() - _START_ERROR_S) * 1e9)
        for path in folder.glob("*.ipynb"):
            stamp, content = _stamp(path), _read(path)
            # a save while reading also counts
            if content is not None and stamp == _stamp(path) and stamp[0] < started_ns:
                saves.stamps[path], saves.first[path] = stamp, content
        return saves

    def follow(self) -> Iterator[Path]:
        """Yield, forever, each notebook saved since it was last detected."""
        while True:
            for path in sorted(self.folder.glob("*.ipynb")):
                stamp = _stamp(path)
                if stamp != self.stamps.get(path):
                    self.stamps[path] = stamp
                    yield path
            time.sleep(POLL_S)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
