"""Take away what ranks left on disk, however deep, locked or strange it is.

Called by the rank server when a launch has ended, and with it every process that could write there.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it. What cannot be removed stays, without an error."""
    empty(folder)
    with suppress(OSError):
        folder.rmdir()


def empty(folder: Path, keep: Path | None = None) -> None:
    """Remove all that is in a folder; of the folder `keep`, if it is met, only what is in it."""
    todo = [folder]
    raised: list[Path] = []
    mark = secrets.token_hex(4)
    while todo:
        here = todo.pop()
        for path in _entries(here):
            with suppress(OSError):
                if not stat.S_ISDIR(path.lstat().st_mode):
                    path.unlink()
                elif path == keep:
                    todo.append(path)
                else:
                    # Raised to the top, no path grows longer than the kernel takes.
                    raised.append(path.rename(folder / f".{mark}-{len(raised)}"))
                    todo.append(raised[-1])
    for path in raised:
        with suppress(OSError):
            path.rmdir()


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        folder.chmod(0o700)  # whose it was may have locked it
    with suppress(OSError):
        return [folder / name for name in os.listdir(folder)]
    return []
