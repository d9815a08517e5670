"""Find what was handed in: one file for each learner, one folder for each, or as an LMS exports them.

class/anna_02_blocking_p2p.ipynb              learner "anna"
class/bela/02_blocking_p2p.ipynb              learner "bela"
class/Cy Lee_123_assignsubmission_file_/x.ipynb    learner "Cy Lee" (Moodle)
class/leecy_LATE_123_456_x.ipynb              learner "leecy (123)" (Canvas)
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from helpers.checks.registry import exercises
from helpers.grading.setting import CannotGrade

# Notebooks that are taken of one learner's folder: some copies of each of the course's.
MOST_FILES = 100
# Files and folders that are looked at in it.
MOST_ENTRIES = 20_000
_DEEPEST = 4
_HIDDEN = (".", "__MACOSX")
# The map of the course, which `course lab` puts into every learner's folder.
_OURS = "home.ipynb"
_MOODLE = re.compile(r"_(\d+)_assign(submission_file|feedback_file).*$")
# A name, perhaps LATE, the learner's number, the submission's, what the file was called.
_CANVAS = re.compile(r"(?P<who>[^_]+)(_LATE)?_(?P<number>\d+)_\d+_.+")
# What browsers put behind the name of a file that they have saved before.
_COPY = re.compile(r" \(\d+\)$")
# Small letters of Cyrillic and Greek that look Latin; the commonest, not all that Unicode has.
_ALIKE = str.maketrans("аеорсухіјѕԁԛԝһӏοαιν", "aeopcyxijsdqwhloaiv")


class NoSubmissions(CannotGrade):
    """The folder gives nothing to grade. One line: what is wrong, and what to do."""


@dataclass(frozen=True)
class Job:
    """One submission to grade. path: the file. file: the same below the class's folder.

    of: how many files its learner has handed in, of which this is one.
    """

    learner: str
    path: Path
    file: str
    of: int = 1


def find_submissions(folder: Path) -> tuple[list[Job], list[str]]:
    """Return the notebooks to grade, in order, and what was noticed on the way, a line each.

    Symbolic links and hidden folders are passed over. Raise NoSubmissions where there is nothing.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
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
            notices.append(
                f"{_printable(child.name)}: no notebook in this folder, {_DEEPEST} folders deep"
            )
    count = Counter(job.learner for job in jobs)
    jobs = [replace(job, of=count[job.learner]) for job in jobs]
    return sorted(jobs, key=lambda job: (job.learner, job.file)), notices


def _files(folder: Path, notices: list[str]) -> Iterator[Path]:
    """Return the notebooks of the class's folder, and of each folder in it."""
    for entry in _entries(folder, folder, notices):
        if entry.is_dir(follow_symlinks=False):
            yield from _files_of_one(Path(entry.path), folder, notices)
        elif _is_notebook(entry.name):
            yield Path(entry.path)


def _files_of_one(own: Path, folder: Path, notices: list[str]) -> Iterator[Path]:
    """Walk down one learner's folder, as far as is bounded: what is too much costs nobody else."""
    todo, looked, count = [(own, 1)], 0, 0
    while todo:
        here, depth = todo.pop()
        for entry in _entries(here, folder, notices):
            looked += 1
            if looked > MOST_ENTRIES:
                name = _printable(own.name)
                notices.append(f"{name}: more than {MOST_ENTRIES:,} files, the others passed over")
                return
            if entry.is_dir(follow_symlinks=False):
                if depth < _DEEPEST:
                    todo.append((Path(entry.path), depth + 1))
            elif _is_notebook(entry.name):
                count += 1
                if count > MOST_FILES:
                    name = _printable(own.name)
                    notices.append(
                        f"{name}: more than {MOST_FILES} notebooks, the others passed over"
                    )
                    return
                yield Path(entry.path)


def _is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def _entries(here: Path, folder: Path, notices: list[str]) -> Iterator[os.DirEntry[str]]:
    """Return what a folder holds, in order: nothing hidden, and no links, which are reported."""
    try:
        # One more than is taken shows that there are too many, without reading all of them.
        with os.scandir(here) as found:
            entries = sorted(islice(found, MOST_ENTRIES + 1), key=lambda entry: entry.name)
    except OSError as error:
        notices.append(f"{_shown(here, folder)}: cannot be opened ({error.strerror})")
        return
    for entry in entries:
        # A link could lead to another learner's file, or to one of the grader's.
        if entry.name.startswith(_HIDDEN) or entry.name == _OURS:
            continue
        if entry.is_symlink():
            notices.append(f"{_shown(Path(entry.path), folder)}: a symbolic link, passed over")
        else:
            yield entry


def _source(path: Path, folder: Path) -> str:
    """Return what says whose a notebook is: its folder, or what its file is called besides a notebook's name.

    A learner may hand in many files, so "anna" of anna_02.ipynb and of anna_03.ipynb is one.
    """
    first, *rest = path.relative_to(folder).parts
    if rest:
        return f"{first}/"
    if found := _CANVAS.fullmatch(path.stem):
        return f"{found['who']} ({found['number']})"
    return _without_notebook(_COPY.sub("", path.stem))


def _without_notebook(stem: str) -> str:
    """Take a notebook's name out of a file's, with the one sign that joins them."""
    known = sorted({exercise.notebook for exercise in exercises().values()})
    found = sorted((stem.find(notebook), notebook) for notebook in known if notebook in stem)
    for at, notebook in found[:1]:
        before, after = stem[:at], stem[at + len(notebook) :]
        before = before[:-1] if before.endswith(("_", "-", ".")) else before
        after = after[1:] if after.startswith(("_", "-", ".")) else after
        return "_".join(filter(None, [before, after])) or stem
    return stem


def _learners(sources: set[str], notices: list[str]) -> dict[str, str]:
    """Name the learner of each source; of those that look alike only one that is spelled so keeps the name.

    Names look alike that differ by a space at the end, by case, by the way to write an accent, or by letters
    of another script. Nobody may get, or lose, what is another's.
    """
    alike: dict[str, list[str]] = {}
    for source in sorted(sources):
        alike.setdefault(_key(_name_of(source)), []).append(source)
    names = {}
    for same in alike.values():
        for source in same:
            name = _name_of(source)
            alone = len(same) == 1 or source == _owner(name, same)
            names[source] = name if alone else f"{name} ({_told(source)})"
        if len(same) > 1:
            told = ", ".join(_told_apart(same))
            notices.append(
                f"{_name_of(same[0])}: names of different submissions, not put together: {told}"
            )
    return names


def _owner(name: str, same: Sequence[str]) -> str | None:
    """Return the one source to which a name belongs: a folder called just so, else a file's name."""
    spelled = [other for other in same if _name_of(other) == name and _is_spelled(other)]
    folders = [other for other in spelled if other.endswith("/")]
    return next((found[0] for found in (folders, spelled) if len(found) == 1), None)


def _is_spelled(source: str) -> bool:
    """Tell whether a learner's name is all that the source says, in just this spelling."""
    return _name_of(source) == source.removesuffix("/")


def _told(source: str) -> str:
    number = _MOODLE.search(source)
    return number[1] if number else repr(source)[:120]


def _told_apart(sources: Sequence[str]) -> list[str]:
    """Return each source so that a reader sees what tells it from the others."""
    told = list(map(_told, sources))
    looks = {unicodedata.normalize("NFKC", each).translate(_ALIKE) for each in told}
    return told if len(looks) == len(told) else list(map(ascii, told))


def _key(name: str) -> str:
    folded = unicodedata.normalize("NFKC", " ".join(name.split())).casefold()
    return folded.translate(_ALIKE).strip("_-.")


def _name_of(source: str) -> str:
    """Take the learner's name out of what says whose a notebook is."""
    name = _MOODLE.sub("", source.removesuffix("/"))
    return unicodedata.normalize("NFC", " ".join(_printable(name).split())) or "?"


def _shown(path: Path, folder: Path) -> str:
    return _printable(str(path.relative_to(folder)))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
