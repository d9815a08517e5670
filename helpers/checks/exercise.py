"""What an exercise is: one file of content, read by `check`, by the hints, by graders.

The file of the exercise that is solved by the function `broadcast_from` is

    helpers/exercises/nb04_collectives/broadcast_from.py

Its docstring begins with number, title, minutes and difficulty, and lists the hints; it ends with
EXERCISE = Exercise(case, ...). From the file's place come the names of function and notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from helpers.checks.case import Case
from helpers.checks.draw import Draw, plan
from helpers.checks.failed import Failed, Stuck
from helpers.checks.headings import Heading
from helpers.checks.kinds import Kind
from helpers.checks.rules import Rule
from helpers.ranks.run import Run

VISIBLE_SECRET = "visible"
"""Takes the place of the grader's secret in the seed of the cases that everybody may see."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: how a case of it is drawn, what must hold besides, its place in the course.

    case: from a `Draw`, one case; called `count` times for the visible cases, and as often for hidden ones.
    rules: what must hold of the trace of every case. failed: what to say of a run that did not end well.
    driver: for kind MODULE, called on each rank as driver(answer, rank, world_size, *given); it
    is in the folder's in_ranks.py. sizes: the world sizes that the text allows. last: one more
    case, which takes seconds, as real agents do, and is tried only if all others have passed. keeps_input:
    the text says that what was given stays as it was. reported: parts of what the driver returns that
    nothing but the rank vouches for, such as counts and what it saw. observe: of a script's run that failed,
    the names of what was observed, by which `known_outcomes` recognizes a mistake.
    """

    case: Callable[[Draw], Case]
    rules: tuple[Rule, ...] = ()
    failed: tuple[Failed | Stuck, ...] = ()
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
        """Return the cases that belong to a secret, small ones first: always the same for one secret.

        small: each with small whole numbers in place of its own, to be read with ease.
        """
        draws = plan(self.sizes, self.count, f"{secret}/{self.name}", small=small)
        # `map` draws in the order of the plan; sorted afterwards, so that the smallest that fails comes first
        cases = sorted(map(self.case, draws), key=lambda case: case.size)
        return (*cases, self.last(draws[0])) if self.last is not None else tuple(cases)

    @cached_property
    def is_together(self) -> bool:
        """Tell whether many cases may share a world."""
        return self.kind is not Kind.SCRIPT  # each script starts processes and a folder of its own


def read(module: ModuleType, heading: Heading) -> Exercise:
    """Return the exercise of a content file, with what stands above it."""
    exercise: Exercise = module.EXERCISE
    return replace(exercise, **vars(heading))
