"""Hold temporary folders while processes use them, and remove unused folders.

A hold ends with its process, even if the process is killed. `remove_unheld_folders` removes the folders left
by killed processes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Age in seconds below which a folder may be about to be locked.
_NEW_S = 60.0


class NotOurs(OSError):
    """The folder belongs to another user, or another user can write to it."""


@contextmanager
def hold_folder(folder: Path) -> Iterator[Path]:
    """Hold a folder, creating it if necessary. The last holder removes it. Raise NotOurs."""
    fd = _try_to_hold(folder)
    try:
        yield folder
    finally:
        with suppress(OSError):  # other processes also hold the folder
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        os.close(fd)


def remove_unheld_folders(prefix: str) -> None:
    """Remove this user's unheld folders whose names begin with `prefix`."""
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            fd = _open(path)
            try:
                told = os.fstat(fd)
                if told.st_uid == os.geteuid() and told.st_mtime < time.time() - _NEW_S:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError if a process holds it
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(fd)


def _try_to_hold(folder: Path) -> int:
    while True:
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o700)  # independent of the umask
        with suppress(FileNotFoundError):
            fd = _open(folder)
            try:
                _refuse_unless_ours(folder, os.fstat(fd))
            except BaseException:
                os.close(fd)
                raise
            fcntl.flock(fd, fcntl.LOCK_SH)
            # The last holder may have removed the folder meanwhile, and another process may have created a
            # new one.
            if folder.exists() and os.path.samestat(folder.stat(), os.fstat(fd)):
                return fd
            os.close(fd)


def _refuse_unless_ours(folder: Path, status: os.stat_result) -> None:
    """Raise NotOurs if another user could have written to a folder."""
    # After its first use, a folder's name is known, and any user may create a folder in the temporary folder.
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid() or mode != 0o700:
        raise NotOurs(
            f"{folder} was not made by this user: it belongs to user {status.st_uid} and has mode "
            f"{mode:04o}; expected: user {os.geteuid()} and mode 0700. Remove it, or have its owner "
            "remove it."
        )


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
