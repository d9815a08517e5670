"""Read each exercise's number, title, minutes and hints from its file's text, without importing torch.

helpers/exercises/nbNN_topic/NAME.py, one file per exercise. Two files are shared by several exercises:
shared.py, and in_ranks.py (or a folder of that name), the only file imported by ranks. pictures.py draws
pictures for its notebook. Code shared by exercises of several notebooks is in helpers/exercises/shared,
from which ranks import only in_ranks.
"""

from __future__ import annotations

import ast
import difflib
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "exercises"
_SHARED_MODULES = {"__init__", "in_ranks", "pictures", "shared"}
_HEADING_PATTERN = re.compile(
    r"(?P<number>\d+\.\d+) (?P<title>.+) \((?P<minutes>\d+) min, (?P<dots>[●○]{5})(?P<further>, further)?\)"
)


# Learners' files and teachers' policies may still use the name of an earlier release.
_FORMER_NAMES = {"22_other_roads": "22_launchers_and_backends"}


class UnknownExercise(LookupError):
    """No exercise has this name."""

    # IPython shows this instead of a traceback through the course's files.
    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class Heading:
    """name: the function that solves the exercise. notebook: the notebook's file name without ".ipynb"."""

    name: str
    notebook: str = ""
    number: str = ""
    title: str = ""
    minutes: int = 0
    difficulty: int = 0
    further: bool = False
    hints: tuple[str, ...] = ()


def parse_heading(text: str, name: str, notebook: str) -> Heading:
    """Read the docstring of an exercise's file. Raise ValueError if it does not begin with a heading."""
    head, _, rest = text.strip().partition("\n")
    match = _HEADING_PATTERN.fullmatch(head.strip())
    if match is None:
        raise ValueError(
            f"{notebook}/{name}: its docstring must begin like '4.1 Broadcast (5 min, ●○○○○)', not with "
            f"{head!r}"
        )
    return Heading(
        name,
        notebook,
        match["number"],
        match["title"],
        int(match["minutes"]),
        match["dots"].count("●"),
        match["further"] is not None,
        tuple(" ".join(part.split()) for part in re.split(r"^- ", rest, flags=re.M)[1:]),
    )


@cache
def headings() -> Mapping[str, Heading]:
    """Return {function's name: heading} for all exercises, in the course's order."""
    by_name: dict[str, Heading] = {}
    for path in _FOLDER.glob("nb*/*.py"):
        if path.stem in _SHARED_MODULES:  # not an exercise, but a file shared by several
            continue
        # learners identify an exercise by its function's name, so it must be unique
        if path.stem in by_name:
            raise ValueError(f"two exercises are called {path.stem}")
        notebook = path.parent.name.removeprefix("nb")
        by_name[path.stem] = parse_heading(_docstring_of(path), path.stem, notebook)
    return dict(sorted(by_name.items(), key=lambda item: _number_key(item[1].number)))


def _docstring_of(path: Path) -> str:
    """Return a file's docstring. Reading just the docstrings takes 20 ms for the whole course."""
    # read tokens instead of importing the file or using `ast`, so that hints appear at once, without torch
    with path.open(encoding="utf-8") as file:
        tokens = tokenize.generate_tokens(file.readline)
        return str(ast.literal_eval(next(t.string for t in tokens if t.type == tokenize.STRING)))


# Compare numbers, not strings, so that 10.2 comes after 9.1.
def _number_key(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def notebooks() -> tuple[str, ...]:
    """Return the names of the course's notebooks, in order."""
    return tuple(dict.fromkeys(heading.notebook for heading in headings().values()))


def all_names_of(notebook: str) -> tuple[str, ...]:
    """Return the notebook's name, and its names in earlier releases."""
    return (notebook, *(former for former, name in _FORMER_NAMES.items() if name == notebook))


def match_notebook(name: str) -> str:
    """Return the notebook with this name or number ("04", "4", "04_collectives"). Raises UnknownExercise."""
    for notebook in notebooks():
        if name in {*all_names_of(notebook), notebook[:2], notebook[:2].removeprefix("0")}:
            return notebook
    raise UnknownExercise(f"there is no notebook {name!r}.")


def find_heading(query: Any) -> Heading:
    """Return the heading with this exercise name, function, title or number ("2.1")."""
    name = str(getattr(query, "__name__", query))
    for heading in headings().values():
        if name in {heading.name, heading.number, heading.title}:
            return heading
    raise unknown_exercise_error(name, headings())


def unknown_exercise_error(name: str, known_names: Iterable[str]) -> UnknownExercise:
    """Return the error for an unknown exercise name, with the most similar names."""
    similar = difflib.get_close_matches(name, list(known_names), 3)
    meant = (
        f"Did you mean {' or '.join(similar)}?"
        if similar
        else "Use the name of the function in the exercise's stub."
    )
    return UnknownExercise(f"no exercise is called {name!r}. {meant}")
