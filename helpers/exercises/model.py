"""What an exercise is: declared once, read by `check`, by the hints, by graders.

Each notebook's exercises are a tuple `EXERCISES` in one module of this package (`nb02_blocking_p2p`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from helpers.checks.exercise import VISIBLE_SECRET
from helpers.checks.kinds import Kind

__all__ = ["VISIBLE_SECRET", "Case", "Exercise", "Kind", "old_exercises"]

if TYPE_CHECKING:
    from helpers.checks.rules import Rule
    from helpers.ranks.run import Run


@dataclass(frozen=True)
class Case:
    """One world on which an answer is tried: what each rank is given, and must give back.

    label: a few words that tell it from the others ("3 ranks, 5 elements").
    inputs[r]: what rank r is given after rank and world_size. expected[r]: what rank r must return:
    a value, compared part by part, or a function from the returned value to "" or to what is wrong
    with it. judge: instead of `expected`, a function from the whole Run to "" or to what is wrong.
    ends: how the launch must end: "" for well, or the name of a failure ("Deadlock").
    """

    label: str
    world_size: int = 2
    inputs: Sequence[Sequence[Any]] = ()
    expected: Sequence[Any] | None = None
    judge: Callable[[Run], str] | None = None
    env: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None
    init: bool = True
    timeout_s: float = 10.0
    tolerance: float | None = None
    """Largest allowed difference, relative and absolute; by default chosen from the dtype."""
    given: str | None = None
    """What the answer is given, in words, where `inputs` are the check's own plan."""
    last: bool = False
    """Tried only if all cases before it passed: one that takes seconds, as real agents do."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its place in the course, its cases, its rules on traffic, its hints.

    cases: from a seeded generator, the cases; the same function gives visible and hidden ones.
    rules: what must hold of the trace of every case. programme: for kind MODULE, "module:function":
    called on each rank as programme(answer, rank, world_size, *inputs). look: from a case and its
    run, the first thing to look at, or "" (tried before the general advice). own_network: its ranks make
    connections beside those of the groups that they were given, or close some.

    For kind SCRIPT a case's world_size counts the script's own processes; programme is called in one
    rank as programme(source, 0, 1, *inputs[0]), starts the script by `scripts`, and returns its report.
    """

    name: str
    number: str
    title: str
    notebook: str
    kind: Kind
    cases: Callable[[random.Random], Iterable[Case]]
    hints: tuple[str, ...]
    minutes: int
    difficulty: int
    points: int = 10
    rules: tuple[Rule, ...] = ()
    programme: str = ""
    look: Callable[[Case, Run], str] | None = None
    further: bool = False
    own_network: bool = False

    @property
    def heading(self) -> str:
        dots = "●" * self.difficulty + "○" * (5 - self.difficulty)
        further = ", further" if self.further else ""
        return f"Exercise {self.number}: {self.title} ({self.minutes} min, {dots}{further})"

    def draw(self, secret: str = VISIBLE_SECRET) -> tuple[Case, ...]:
        """Give the cases that belong to a secret: always the same ones for the same secret."""
        return tuple(self.cases(random.Random(f"{secret}/{self.name}")))


def old_exercises() -> list[Any]:
    """Give the exercises that are still in the old form."""
    import helpers.exercises as package

    modules = sorted(info.name for info in iter_modules(package.__path__))
    return [
        exercise
        for module in modules
        if module.startswith("old_nb")
        for exercise in import_module(f"helpers.exercises.{module}").EXERCISES
    ]
