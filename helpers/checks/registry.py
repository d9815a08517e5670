"""Every exercise of the course, by the name of the function that solves it.

helpers/exercises/nbNN_topic/NAME.py, one file an exercise; files that several share:
in_ranks.py (or a folder of that name), the only one that ranks import, and shared.py
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from helpers.checks.exercise import Exercise, read

_FOLDER = Path(__file__).parents[1] / "exercises"
_SHARED = {"__init__", "in_ranks", "shared"}


class UnknownExercise(LookupError):
    """No exercise has this name."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@cache
def exercises() -> Mapping[str, Exercise]:
    """Give every exercise of the course by the name of its function, in the course's order."""
    found: dict[str, Exercise] = {}
    for path in sorted(_FOLDER.glob("nb*/*.py")):
        if path.stem not in _SHARED:
            module = import_module(f"helpers.exercises.{path.parent.name}.{path.stem}")
            if path.stem in found:
                raise ValueError(f"two exercises are called {path.stem}")
            found[path.stem] = read(module)
    return dict(sorted(found.items(), key=lambda item: _place(item[1].number)))


def _place(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def get(name: str) -> Exercise:
    """Give the exercise whose function is called `name`. Raise UnknownExercise with the nearest."""
    known = exercises()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(str(name), known, 3)
    meant = f"Did you mean {' or '.join(near)}?" if near else "Give the name that its stub has."
    raise UnknownExercise(f"no exercise is called {name!r}. {meant}")


def find(asked: Any) -> Exercise:
    """Give the exercise that is asked for by its name, its function, or its number ("2.1")."""
    name = str(getattr(asked, "__name__", asked))
    for exercise in exercises().values():
        if name in {exercise.number, exercise.title}:
            return exercise
    return get(name)
