"""Where a learner is: the map of the course, what is done, begun and next, and the minutes that are left.

    progress + headings + quizzes -> places() -> Home -> home(), work/home.ipynb, `course progress`

`course lab` writes work/home.ipynb again each time and opens it, so that the map stands there before anything
was run. While it is on screen, look/home.js asks the server (look/__init__.py) for the map as it is now.
Without that server, the one cell draws it again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from helpers.checks.headings import Heading, headings
from helpers.course.notebook_file import notebook_metadata, write_notebook
from helpers.course.page import page
from helpers.course.progress import Progress, read
from helpers.course.quizzes import quizzes_of_notebooks
from helpers.course.workspace import cells_with, file_of, trusted
from helpers.views.live import live_page

FILE = "home.ipynb"
_PAGE = Path(__file__).parent / "look" / "home.js"
_CELL = "from helpers import home\n\nhome()"
_ANSWERS = {"right": "●", "tried": "◐", "open": "○"}
_ANSWERED = {"right": "answered", "tried": "not right yet", "open": "not answered yet"}
_PARTS = {
    0: "I Communicating",
    7: "II Training together",
    12: "III Models that do not fit",
    18: "IV Running for real",
    22: "V All together",
}
"""The parts of the course, by the number of the notebook with which each begins."""
_SIGNS = {"done": "●", "begun": "◐", "next": "▶", "to come": "○"}


def part_of(number: int) -> str:
    """Return the part of notebook `number`, as "II Training together"."""
    return next(name for first, name in reversed(_PARTS.items()) if number >= first)


@dataclass(frozen=True)
class Asked:
    """One quiz. state: "right", "tried" or "open"; cell: the id of its cell in the notebook, where known."""

    id: str
    state: str
    cell: str


@dataclass(frozen=True)
class Place:
    """One notebook. state: "done", "begun", "next" or "to come"; next: its first core exercise to do.

    passed, core: its core exercises; minutes: of those that are left; done: the names of all that passed.
    """

    notebook: str
    title: str
    state: str
    passed: int
    core: int
    quizzes: tuple[Asked, ...]
    minutes: int
    next: Heading | None
    done: frozenset[str] = frozenset()

    @property
    def part(self) -> str:
        return part_of(int(self.notebook[:2]))

    @property
    def right(self) -> int:
        return sum(quiz.state == "right" for quiz in self.quizzes)

    @property
    def file(self) -> str:
        return f"{self.notebook}.ipynb"


@dataclass(frozen=True, repr=False)
class Home:
    """The map, which shows itself as text or as a page with links."""

    places: tuple[Place, ...]
    note: str = ""

    @property
    def here(self) -> Place | None:
        """The notebook to go on with: the last that was begun, else the first that is not done."""
        begun = [place for place in self.places if place.state == "begun"]
        return begun[-1] if begun else next((p for p in self.places if p.state == "next"), None)

    def __repr__(self) -> str:
        lines = []
        width = max((len(place.title) for place in self.places), default=0)
        for part, own in groupby(self.places, lambda each: each.part):
            lines += ["", part]
            for place in own:
                left = f", {place.minutes} min left" if place.minutes else ""
                lines.append(
                    f"  {_SIGNS[place.state]} {place.title:<{width}}  {place.state:<7}  {place.passed}/"
                    f"{place.core} exercises, {place.right}/{len(place.quizzes)} quizzes{left}"
                )
        return "\n".join([*lines[1:], "", *self._words()])

    def _words(self) -> list[str]:
        done = sum(place.state == "done" for place in self.places)
        left = sum(place.minutes for place in self.places)
        words = [
            f"{done} of {len(self.places)} notebooks done. Core exercises left: about {_hours(left)}."
        ]
        if self.here is not None:
            words.append(f"Go on with {self.here.title}{_task(self.here)}.")
        return [*words, *([self.note] if self.note else [])]

    def _repr_html_(self) -> str:
        return live_page(_PAGE, {}, self.map_html())

    def map_html(self) -> str:
        """Return the map alone, which does not change while it is shown."""
        first, *_ = self._words()
        task = _task(self.here) if self.here is not None else ""
        return page(
            "home.html",
            home=self,
            first=first,
            task=task,
            parts=[(part, list(own)) for part, own in groupby(self.places, lambda each: each.part)],
            signs=_SIGNS,
            answers=_ANSWERS,
            answered=_ANSWERED,
        )


def home() -> Home:
    """Show the map of the course: what is done, begun and next, with a link to each notebook."""
    progress = read()
    return Home(places(progress, list(headings().values())), progress.note)


def places(progress: Progress, exercises: Sequence[Heading]) -> tuple[Place, ...]:
    """Return each notebook's place, in the course's order.

    Where no notebook is begun, the one after the last that is done is "next", or the first to come.
    """
    found: list[Place] = []
    for notebook in dict.fromkeys(exercise.notebook for exercise in exercises):
        own = [e for e in exercises if e.notebook == notebook]
        core = [e for e in own if not e.further]
        left = [e for e in core if not progress.has_passed(e.name)]
        asked = _asked(progress, notebook)
        begun = any(quiz.state != "open" for quiz in asked) or any(
            e.name in {*progress.exercises, *progress.hints} for e in own
        )
        state = "done" if not left else "begun" if begun else "to come"
        found.append(
            Place(
                notebook,
                title_of(notebook),
                state,
                len(core) - len(left),
                len(core),
                asked,
                sum(e.minutes for e in left),
                left[0] if left else None,
                frozenset(e.name for e in own if progress.has_passed(e.name)),
            )
        )
    states = [place.state for place in found]
    if "begun" not in states and "to come" in states:
        done = max((i for i, state in enumerate(states) if state == "done"), default=-1)
        later = states[max(done, 0) :]
        after = states.index("to come", max(done, 0) if "to come" in later else 0)
        found[after] = replace(found[after], state="next")
    return tuple(found)


def write_home(work: Path) -> Path:
    """Write the home page into a learner's folder, with the map as it is now; give the file."""
    output = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/html": home()._repr_html_(), "text/plain": repr(home())},
    }
    words = (
        "# Where you are\n\nClick a notebook to open it. The map follows your work while it is open. If it "
        "stands still, run the cell below (Shift+Enter)."
    )
    docs = Path(__file__).resolve().parents[2] / "docs"
    if docs.is_dir():
        words += f" How ranks work, and more: the folder `{docs}`."
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "home-1", "metadata": {}, "source": words},
        {
            "cell_type": "code",
            "id": "home-2",
            "metadata": {},
            "execution_count": 1,
            "outputs": [output],
            "source": _CELL,
        },
    ]
    path = work / FILE
    notebook = {
        "cells": cells,
        "metadata": notebook_metadata(),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    write_notebook(path, notebook)
    trusted(path)
    return path


def _task(place: Place) -> str:
    if place.next is None:
        return ""
    return f": exercise {place.next.number}, {place.next.title} ({place.next.minutes} min)"


def _hours(minutes: int) -> str:
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.0f} h"


def _asked(progress: Progress, notebook: str) -> tuple[Asked, ...]:
    def state(quiz: str) -> str:
        answers = progress.quizzes.get(quiz)
        return "open" if answers is None else "right" if answers.correct else "tried"

    cells = cells_with(notebook, r'predict\("([^"]+)"\)')
    ids = quizzes_of_notebooks().get(notebook, ())
    return tuple(Asked(quiz, state(quiz), cells.get(quiz, "")) for quiz in ids)


@cache
def title_of(notebook: str) -> str:
    """Return a notebook's own title, "02 · Blocking send and recv"; its file's name where there is none."""
    path = file_of(notebook)
    if path is None:
        return notebook
    with path.open(encoding="utf-8") as file:
        match = re.search(r'"# (\d\d · [^"\\]+)', file.read(20_000))
    return match[1] if match else notebook
