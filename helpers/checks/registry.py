"""List every exercise of the course by the name of the function that solves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from helpers.checks.exercise import Exercise, add_heading
from helpers.checks.headings import find_heading, headings, unknown_exercise_error


class _Exercises(Mapping[str, Exercise]):
    """The exercises of the course. An exercise's file is imported when it is first used."""

    def __getitem__(self, name: str) -> Exercise:
        return _load_exercise(name)

    def __contains__(self, name: object) -> bool:
        return name in headings()

    def __iter__(self) -> Iterator[str]:
        return iter(headings())

    def __len__(self) -> int:
        return len(headings())


@cache
def _load_exercise(name: str) -> Exercise:
    heading = headings()[name]
    # import only this file, so that checking one exercise does not import the others
    return add_heading(import_module(f"helpers.exercises.nb{heading.notebook}.{name}"), heading)


def exercises() -> Mapping[str, Exercise]:
    """Return every exercise of the course by the name of its function, in the course's order."""
    return _Exercises()


def get(name: str) -> Exercise:
    """Return the exercise whose function is called `name`. Raise UnknownExercise with similar names."""
    if name in headings():
        return _load_exercise(name)
    raise unknown_exercise_error(str(name), headings())


def find_exercise(query: Any) -> Exercise:
    """Return the exercise with this name, function, or number ("2.1")."""
    return _load_exercise(find_heading(query).name)
