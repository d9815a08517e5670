"""Find the notebook or exercise named by a command's argument: by number, name or path.

"02", "2", "02_blocking_p2p", "work/02_blocking_p2p.ipynb"  ->  a notebook
"2.1", "ping_pong", "Ping-pong"                             -> an exercise
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helpers.checks.headings import (
    Heading,
    UnknownExercise,
    all_names_of,
    find_heading,
    headings,
    match_notebook,
)
from helpers.course.progress import read_progress
from helpers.course.workspace import Workspace

_SUFFIX = ".ipynb"


class UnknownTarget(LookupError):
    """An argument names neither a notebook nor an exercise, or the notebook is missing."""


@dataclass(frozen=True)
class Target:
    """A notebook of the course and, if the argument names an exercise, its heading."""

    notebook: str
    exercise: Heading | None = None


def find_target(words: str) -> Target:
    """Return the notebook or exercise named by an argument. Raises UnknownTarget."""
    name = Path(words).name.removesuffix(_SUFFIX) if words.endswith(_SUFFIX) else words
    try:
        return Target(match_notebook(name))
    except UnknownExercise:
        pass
    try:
        heading = find_heading(name)
    except UnknownExercise as error:
        raise UnknownTarget(
            f"{error.args[0]} You can also give a notebook: its number (02), its name or its path."
        ) from error
    return Target(heading.notebook, heading)


def find_answers_file(workspace: Workspace, words: str, only: str = "") -> tuple[Path, str]:
    """Return the file named by an argument, and the exercise to check: `only`, or the named exercise.

    If the argument is an existing file, this file is used. Otherwise the notebook in the learner's folder is
    used. Raises UnknownTarget if it does not exist.
    """
    given = Path(words)
    if given.is_file():
        return given, only
    is_path = words.endswith(_SUFFIX) or len(given.parts) > 1
    if is_path and given.parent.name not in ("", workspace.work.name):
        raise UnknownTarget(f"{words} does not exist: check the path.")
    try:
        target = find_target(words)
    except UnknownTarget as error:
        if is_path:
            raise UnknownTarget(f"{words} does not exist: check the path.") from error
        raise
    files = [workspace.work / f"{name}{_SUFFIX}" for name in all_names_of(target.notebook)]
    file = next((each for each in files if each.is_file()), None)
    if file is None:
        raise UnknownTarget(f"{files[0]} does not exist. `course lab` copies it there.")
    return file, only or (target.exercise.name if target.exercise else "")


def find_open_exercise(words: str) -> str:
    """Return the named exercise or, for a notebook, the first of its exercises that has not passed."""
    target = find_target(words)
    if target.exercise is not None:
        return target.exercise.name
    progress = read_progress()
    own = [each for each in headings().values() if each.notebook == target.notebook]
    in_order = sorted(own, key=lambda each: each.further)
    return next((each for each in in_order if not progress.has_passed(each.name)), own[0]).name
