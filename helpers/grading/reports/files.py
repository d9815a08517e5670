"""Write report files whole or not at all, and never through a symbolic link.

`write_reports` opens a `Folder` for each directory that it writes into.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from helpers.grading.reports.slugs import is_page_name
from helpers.grading.setting import CannotGrade


class ReportError(CannotGrade):
    """Reports cannot be written: where, why, and what to do."""


@dataclass(frozen=True)
class Folder:
    """A directory that is held open, so that nobody can put a link in its place meanwhile."""

    path: Path
    descriptor: int

    def write(self, name: str, data: bytes) -> Path:
        """Write a file next to its place, then move it there. Raise ReportError if it cannot be."""
        part = f".{name}.part"
        try:
            self._refuse_link(name)
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=self.descriptor)  # of a run that was killed
            # O_EXCL and O_NOFOLLOW: opening fails if somebody has put a link here since the last look.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(part, flags, 0o644, dir_fd=self.descriptor), "wb") as file:
                file.write(data)
            os.replace(part, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except OSError as error:
            raise ReportError(f"{self.path / name} cannot be written: {error.strerror}.") from error
        return self.path / name

    def keep(self, names: Collection[str]) -> None:
        """Remove the pages of earlier runs that are not among `names`. Raise ReportError if it cannot be."""
        for name in os.listdir(self.descriptor):
            if is_page_name(name) and name not in names:
                self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a file of an earlier run, if it exists. Raise ReportError if it cannot be removed."""
        try:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self.descriptor)
        except OSError as error:
            raise ReportError(
                f"{self.path / name} is left from an earlier run and cannot be removed: "
                f"{error.strerror}."
            ) from error

    def _refuse_link(self, name: str) -> None:
        with suppress(FileNotFoundError):
            if (os.lstat(name, dir_fd=self.descriptor).st_mode & 0o170000) == 0o120000:
                raise _link(self.path / name)


@contextmanager
def open_folder(path: Path, within: Folder | None = None) -> Iterator[Folder]:
    """Make a directory if need be and hold it open. Raise ReportError if that cannot be.

    within: the folder it is in, to which no link may lead; without it `path` is the user's own word.
    """
    parent = None if within is None else within.descriptor
    name = path if within is None else Path(path.name)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        if within is None:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            within._refuse_link(path.name)
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
            flags |= os.O_NOFOLLOW
        descriptor = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        raise ReportError(f"No reports can be written to {path}: {error.strerror}.") from error
    try:
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _link(path: Path) -> ReportError:
    return ReportError(
        f"{path} is a symbolic link; reports do not follow it. Remove it and try again."
    )
