"""Define an exercise: one file of content that `check`, the hints and graders read.

The file of the exercise that is solved by the function `broadcast_from` is

    helpers/exercises/nb04_collectives/broadcast_from.py

Its docstring begins with number, title, minutes and difficulty, and lists the hints. The file ends with
EXERCISE = Exercise(case, ...). The names of the function and of the notebook are taken from the file's path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from helpers.checks.case import Case
from helpers.checks.draw import Draw, plan_draws
from helpers.checks.failure_advice import CrashAdvice, HangAdvice
from helpers.checks.headings import Heading
from helpers.checks.kinds import Kind
from helpers.checks.rules import Rule
from helpers.ranks.run import Run

VISIBLE_SECRET = "visible"
"""The seed of the visible cases, used instead of the grader's secret."""

_FIRST_WITH_WRAPPERS = "09"
"""The number of the first notebook on DDP. Nearly all later notebooks use one of torch's wrappers."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its cases, its rules, and its place in the course.

    case: draws one case from a `Draw`; called `count` times for the visible cases, and as often for hidden
    cases. rules: the conditions on the trace of every case. failed: advice for failed runs. driver: for kind
    MODULE, called on each rank as driver(answer, rank, world_size, *given). The driver is in the folder's
    in_ranks.py. sizes: the world sizes allowed in the text. last: one more case, which is tried only after
    all others have passed, because it takes seconds, for example for running real agents. keeps_input:
    whether, according to the text, inputs must not be changed. reported: parts of the driver's result that
    cannot be confirmed outside the rank, such as counts and observations. observe: for a script's failed run,
    yields the names of the observations by which `known_outcomes` recognizes a mistake.
    """

    case: Callable[[Draw], Case]
    rules: tuple[Rule, ...] = ()
    failed: tuple[CrashAdvice | HangAdvice, ...] = ()
    kind: Kind = Kind.RANKS
    driver: Callable[..., Any] | None = None
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    count: int = 24
    last: Callable[[Draw], Case] | None = None
    keeps_input: bool = False
    reported: tuple[str, ...] = ()
    observe: Callable[[Case, Run], Iterable[str]] | None = None
    points: int = 10
    name: str = ""
    notebook: str = ""
    number: str = ""
    title: str = ""
    minutes: int = 0
    difficulty: int = 0
    further: bool = False
    hints: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        dots = "●" * self.difficulty + "○" * (5 - self.difficulty)
        further = ", further" if self.further else ""
        return f"Exercise {self.number}: {self.title} ({self.minutes} min, {dots}{further})"

    def draw(self, secret: str = VISIBLE_SECRET, *, small: bool = False) -> tuple[Case, ...]:
        """Return the cases drawn with a secret, small ones first. Equal secrets yield equal cases.

        small: use small whole numbers in tensors, which are easier to read.
        """
        draws = plan_draws(self.sizes, self.count, f"{secret}/{self.name}", small=small)
        # `map` draws in the order of the plan. The cases are then sorted, so that the smallest failing one
        # comes first.
        cases = sorted(map(self.case, draws), key=lambda case: case.size)
        return (*cases, self.last(draws[0])) if self.last is not None else tuple(cases)

    @property
    def needs_wrappers(self) -> bool:
        """Return whether the exercise's notebook uses DDP, FSDP or DTensor, whose import takes seconds."""
        return self.notebook >= _FIRST_WITH_WRAPPERS

    @cached_property
    def may_share_world(self) -> bool:
        """Return whether many cases may share a world."""
        # Each script starts new processes in a separate folder
        return self.kind is not Kind.SCRIPT


def add_heading(module: ModuleType, heading: Heading) -> Exercise:
    """Return the exercise of a content file, with its heading."""
    exercise: Exercise = module.EXERCISE
    return replace(exercise, **vars(heading))
