"""Every exercise of the course, by the name of the function that solves it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from helpers.checks.exercise import Exercise, read
from helpers.checks.headings import find_heading, headings, unknown


@cache
def exercises() -> Mapping[str, Exercise]:
    """Give every exercise of the course by the name of its function, in the course's order."""
    return {
        name: read(import_module(f"helpers.exercises.nb{heading.notebook}.{name}"), heading)
        for name, heading in headings().items()
    }


def get(name: str) -> Exercise:
    """Give the exercise whose function is called `name`. Raise UnknownExercise with the nearest."""
    known = exercises()
    if name in known:
        return known[name]
    raise unknown(str(name), known)


def find(asked: Any) -> Exercise:
    """Give the exercise that is asked for by its name, its function, or its number ("2.1")."""
    return exercises()[find_heading(asked).name]
