"""Read the paths through the course: the notebooks, or their parts, that lead to a goal.

    paths.toml -> paths() -> home(), next_steps(), `course sessions --path`, `course slides --path`, the site

A path may leave out parts of a notebook. A notebook on no path except "everything" is a reference work.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from helpers.checks.headings import Heading, headings, match_notebook, notebooks

_FILE = Path(__file__).with_name("paths.toml")
EVERYTHING = "everything"


@dataclass(frozen=True)
class Stop:
    """A notebook on a path.

    parts: the headings of its parts on the path, including optional exercises; () for the whole notebook
    except for optional exercises.
    """

    notebook: str
    parts: tuple[str, ...] = ()

    def has(self, title: str, *, further: bool = False) -> bool:
        """Return whether the part under a heading belongs to the path. further: whether it is optional."""
        return title in self.parts if self.parts else not further

    @property
    def exercises(self) -> tuple[Heading, ...]:
        """Return the notebook's exercises on the path."""
        own = (each for each in headings().values() if each.notebook == self.notebook)
        return tuple(each for each in own if self.has(each.title, further=each.further))

    @property
    def link(self) -> str:
        """Return the notebook's file, whose first cells contain the imports of all parts."""
        return f"{self.notebook}.ipynb"


@dataclass(frozen=True)
class PathPicture:
    """A cell whose output shows the result of a path."""

    notebook: str
    cell: str


@dataclass(frozen=True)
class LearningPath:
    """A path.

    name: its name on the command line. goal, end: a sentence about each. presupposes: prior knowledge, and
    the notebooks that explain it. minutes: time for reading and core exercises. picture: the picture shown at
    the end. sequel: a sentence about a page to read afterwards.
    """

    name: str
    title: str
    goal: str
    end: str
    presupposes: str
    minutes: int
    stops: tuple[Stop, ...]
    picture: PathPicture | None = None
    sequel: str = ""

    def after(self, notebook: str) -> Stop | None:
        """Return the stop after a notebook, or None if the notebook is the last one or is not on the path."""
        names = [stop.notebook for stop in self.stops]
        if notebook not in names[:-1]:
            return None
        return self.stops[names.index(notebook) + 1]


def path_names() -> list[str]:
    """Return the names of all paths, starting with the path for beginners."""
    return list(_path_table())


@cache
def paths() -> Mapping[str, LearningPath]:
    """Return {name: path} for all paths. Raise UnknownExercise if a path contains an unknown notebook."""
    return {name: _path(name, **entry) for name, entry in _path_table().items()}


def _path_table() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _path(
    name: str,
    title: str,
    goal: str,
    end: str,
    presupposes: str,
    minutes: int,
    stops: Sequence[Mapping[str, Any]] = (),
    picture: Mapping[str, str] | None = None,
    sequel: str = "",
) -> LearningPath:
    listed = stops or [{"notebook": each} for each in notebooks()]
    found = (
        Stop(match_notebook(each["notebook"]), tuple(each.get("parts", ()))) for each in listed
    )
    shown = PathPicture(match_notebook(picture["notebook"]), picture["cell"]) if picture else None
    return LearningPath(name, title, goal, end, presupposes, minutes, tuple(found), shown, sequel)


def is_reference(notebook: str) -> bool:
    """Return whether a notebook is on no path except the path through all notebooks."""
    short = (path for path in paths().values() if path.name != EVERYTHING)
    return not any(stop.notebook == notebook for path in short for stop in path.stops)


def hours(minutes: int) -> str:
    """Write a duration in words: "40 min", "3 h", "3.5 h"."""
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 30) / 2:g} h"
