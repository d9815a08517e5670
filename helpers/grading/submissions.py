"""Find what was handed in: one file for each learner, one folder for each, or as an LMS exports them.

class/anna_02_blocking_p2p.ipynb              learner "anna"
class/bela/02_blocking_p2p.ipynb              learner "bela"
class/Cy Lee_123_assignsubmission_file_/x.ipynb    learner "Cy Lee" (Moodle)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.checks.registry import exercises

MOST_FILES = 20_000
_DEEPEST = 4
_HIDDEN = (".", "__MACOSX")
_MOODLE = re.compile(r"_\d+_assign(submission_file|feedback_file).*$")


class NoSubmissions(Exception):
    """The folder gives nothing to grade. One line: what is wrong, and what to do."""


@dataclass(frozen=True)
class Job:
    """One submission to grade. path: the file. file: the same below the class's folder."""

    learner: str
    path: Path
    file: str


def find_submissions(folder: Path) -> tuple[list[Job], list[str]]:
    """Give the notebooks to grade, in order, and what was noticed on the way, a line each.

    Symbolic links and hidden folders are passed over. Raise NoSubmissions where there is nothing.
    """
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise NoSubmissions(f"{folder} {what}: name the folder with what was handed in.")
    notices: list[str] = []
    jobs = [
        Job(_learner(path, folder), path, _shown(path, folder)) for path in _files(folder, notices)
    ]
    if not jobs:
        raise NoSubmissions(
            f"{folder} holds no notebook (.ipynb): name the folder with what was handed in."
        )
    learners = {job.learner for job in jobs}
    for child in sorted(folder.iterdir()):
        shown = child.is_dir() and not child.is_symlink() and not child.name.startswith(_HIDDEN)
        if shown and _name_of(child.name) not in learners:
            notices.append(f"{_printable(child.name)}: no notebook in this folder")
    return sorted(jobs, key=lambda job: (job.learner, job.file)), notices


def _files(folder: Path, notices: list[str]) -> Iterator[Path]:
    """Walk down without following links; give each notebook."""
    todo, count = [(folder, 0)], 0
    while todo:
        here, depth = todo.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as error:
            notices.append(f"{_shown(here, folder)}: cannot be opened ({error.strerror})")
            continue
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(_HIDDEN):
                continue
            if entry.is_symlink():
                notices.append(f"{_shown(path, folder)}: a symbolic link, passed over")
            elif entry.is_dir(follow_symlinks=False):
                if depth < _DEEPEST:
                    todo.append((path, depth + 1))
            elif entry.name.endswith(".ipynb"):
                count += 1
                if count > MOST_FILES:
                    raise NoSubmissions(f"{folder} holds more than {MOST_FILES:,} notebooks.")
                yield path


def _learner(path: Path, folder: Path) -> str:
    first, *rest = path.relative_to(folder).parts
    return _name_of(first) if rest else _name_of(path.stem, file=True)


def _name_of(text: str, *, file: bool = False) -> str:
    """Take the learner's name out of the name of a folder or file."""
    name = _MOODLE.sub("", text)
    if file:
        for notebook in {exercise.notebook for exercise in exercises().values()}:
            short = name.replace(notebook, "").strip(" _-.")
            if short != name and short:
                name = short
                break
    return _printable(name) or "?"


def _shown(path: Path, folder: Path) -> str:
    return _printable(str(path.relative_to(folder)))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
