"""Remove files left on disk by ranks, even if they are deeply nested or locked.

The rank server calls this module after a launch and every process that could write these files have ended.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder and its contents. Ignore files that cannot be removed."""
    empty_folder(folder)
    with suppress(OSError):
        folder.rmdir()


def empty_folder(folder: Path, kept_folder: Path | None = None) -> None:
    """Remove the contents of a folder. Keep the subfolder `kept_folder`, but remove its contents."""
    todo = [folder]
    moved: list[Path] = []
    prefix = secrets.token_hex(4)
    while todo:
        current = todo.pop()
        for path in _list_entries(current):
            with suppress(OSError):
                if not stat.S_ISDIR(path.lstat().st_mode):
                    path.unlink()
                elif path == kept_folder:
                    todo.append(path)
                else:
                    # Move it to the top, so that no path becomes too long for the kernel.
                    moved.append(path.rename(folder / f".{prefix}-{len(moved)}"))
                    todo.append(moved[-1])
    for path in moved:
        with suppress(OSError):
            path.rmdir()


def _list_entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        folder.chmod(0o700)  # The learner's code may have removed the permissions.
    with suppress(OSError):
        return [folder / name for name in os.listdir(folder)]
    return []
