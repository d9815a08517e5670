"""Find what was handed in: one file for each learner, one folder for each, or as an LMS exports them.

class/anna_02_blocking_p2p.ipynb              learner "anna"
class/bela/02_blocking_p2p.ipynb              learner "bela"
class/Cy Lee_123_assignsubmission_file_/x.ipynb    learner "Cy Lee" (Moodle)
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.checks.registry import exercises

MOST_FILES = 20_000
_DEEPEST = 4
_HIDDEN = (".", "__MACOSX")
_MOODLE = re.compile(r"_(\d+)_assign(submission_file|feedback_file).*$")


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
    paths = list(_files(folder, notices))
    learners = _learners({_source(path, folder) for path in paths}, notices)
    jobs = [Job(learners[_source(path, folder)], path, _shown(path, folder)) for path in paths]
    if not jobs:
        raise NoSubmissions(
            f"{folder} holds no notebook (.ipynb): name the folder with what was handed in."
        )
    full = {path.relative_to(folder).parts[0] for path in paths}
    for child in sorted(folder.iterdir()):
        shown = child.is_dir() and not child.is_symlink() and not child.name.startswith(_HIDDEN)
        if shown and child.name not in full:
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


def _source(path: Path, folder: Path) -> str:
    """Give what says whose a notebook is: its folder, or what its file is called besides a notebook's name.

    A learner may hand in many files, so "anna" of anna_02.ipynb and of anna_03.ipynb is one.
    """
    first, *rest = path.relative_to(folder).parts
    return f"{first}/" if rest else _without_notebook(path.stem)


def _without_notebook(stem: str) -> str:
    known = sorted({exercise.notebook for exercise in exercises().values()})
    found = sorted((stem.find(notebook), notebook) for notebook in known if notebook in stem)
    for _, notebook in found[:1]:
        return stem.replace(notebook, "", 1).strip("_-.") or stem
    return stem


def _learners(sources: set[str], notices: list[str]) -> dict[str, str]:
    """Name the learner of each source; where two have the same name, each is named with its source.

    Names are the same that look alike: a space at the end, another case, another way to write an accent.
    Nobody may get, or lose, what is another's.
    """
    alike: dict[str, list[str]] = {}
    for source in sorted(sources):
        alike.setdefault(_key(_name_of(source)), []).append(source)
    names = {}
    for same in alike.values():
        for source in same:
            name = _name_of(source)
            names[source] = name if len(same) == 1 else f"{name} ({_told(source)})"
        if len(same) > 1:
            told = ", ".join(map(_told, same))
            notices.append(
                f"{_name_of(same[0])}: names of different submissions, not put together: {told}"
            )
    return names


def _told(source: str) -> str:
    number = _MOODLE.search(source)
    return number[1] if number else repr(source)[:120]


def _key(name: str) -> str:
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


def _name_of(source: str) -> str:
    """Take the learner's name out of what says whose a notebook is."""
    name = _MOODLE.sub("", source.removesuffix("/"))
    return unicodedata.normalize("NFC", " ".join(_printable(name).split())) or "?"


def _shown(path: Path, folder: Path) -> str:
    return _printable(str(path.relative_to(folder)))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
