"""Show a learner the next step, the progress on each path, and the map of the course.

    progress + headings + quizzes -> notebook_places(), path_progress() -> Home -> home(), work/home.ipynb

`course lab` always rewrites work/home.ipynb and opens it, so that the map is shown before any cell runs.
While the page is open, look/home.js asks the server (look/__init__.py) for the current map. Without this
server, the map is drawn again by running the page's only cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from helpers.checks.headings import Heading, all_names_of, headings
from helpers.course.notebook_file import notebook_metadata, write_notebook
from helpers.course.page import render_page
from helpers.course.path_picture import path_picture
from helpers.course.paths import EVERYTHING, LearningPath, Stop, hours, is_reference, paths
from helpers.course.progress import Progress, read_progress
from helpers.course.quizzes import quizzes_of_notebooks
from helpers.course.workspace import (
    WorkspaceError,
    docs_page,
    file_of,
    find_workspace,
    matching_cells,
    sign_notebook,
)
from helpers.views.live import live_page
from helpers.views.plain import join_words

HOME_FILE = "home.ipynb"
_PAGE = Path(__file__).parent / "look" / "home.js"
_CELL = "from helpers import home\n\nhome()"
_ANSWERS = {"right": "●", "tried": "◐", "open": "○"}
_ANSWERED = {"right": "answered", "tried": "to try again", "open": "not answered yet"}
_PARTS = {
    0: "I Communicating",
    7: "II Training together",
    12: "III Models that do not fit",
    18: "IV Running for real",
    22: "V All together",
}
"""{number of the first notebook: title} of each part of the course."""
_DOCS = (
    ("How ranks work", "engine.md"),
    ("Several machines", "hosts.md"),
    ("DDP in twelve lines", "ddp-in-twelve-lines.md"),
    ("Symptoms of your own job", "symptoms.md"),
    ("Speed and memory, measured", "results.md"),
)
CHOOSE_PATH = "`course progress --path NAME` chooses another."
SHOW_IT = "`course progress --html can_do.html` writes a page that shows what you can do now."
_SIGNS = {"done": "●", "begun": "◐", "next": "▶", "to come": "○"}


def part_of(number: int) -> str:
    """Return the part of notebook `number`, for example "II Training together"."""
    return next(name for first, name in reversed(_PARTS.items()) if number >= first)


@dataclass(frozen=True)
class QuizState:
    """One quiz. state: "right", "tried" or "open"; cell: the id of its cell in the notebook, if known."""

    id: str
    state: str
    cell: str


@dataclass(frozen=True)
class Place:
    """One notebook. state: "done", "begun", "next" or "to come"; next: the first unfinished core exercise.

    passed_count, core_count: the numbers of passed and of all core exercises; remaining_minutes: the time for
    the core exercises that have not passed; done: the names of all passed exercises.
    """

    notebook: str
    title: str
    state: str
    passed_count: int
    core_count: int
    quizzes: tuple[QuizState, ...]
    remaining_minutes: int
    next: Heading | None
    done: frozenset[str] = frozenset()

    @property
    def part(self) -> str:
        return part_of(int(self.notebook[:2]))

    @property
    def right_quiz_count(self) -> int:
        return sum(quiz.state == "right" for quiz in self.quizzes)

    @property
    def file(self) -> str:
        return f"{self.notebook}.ipynb"


@dataclass(frozen=True)
class StopProgress:
    """A stop of a path and its progress.

    left: the exercises that have not passed. last_check: the time of the last check of its exercises, or "".
    """

    stop: Stop
    place: Place
    left: tuple[Heading, ...]
    last_check: str = ""

    @property
    def state(self) -> str:
        """Return "done", "begun" or "to come". A stop without exercises is done with the previous one."""
        if not self.left:
            return "done"
        return "begun" if len(self.left) < len(self.stop.exercises) else "to come"

    @property
    def next_title(self) -> str:
        """Return the title of the first open exercise or, for a notebook not yet begun, of the notebook."""
        if self.place.state != "begun" or not self.left:
            return self.place.title
        return f"{self.left[0].number} {self.left[0].title} ({self.left[0].minutes} min)"


@dataclass(frozen=True)
class PathProgress:
    """A path and its progress."""

    path: LearningPath
    legs: tuple[StopProgress, ...]

    @property
    def is_short(self) -> bool:
        return self.path.name != EVERYTHING

    @property
    def exercises(self) -> tuple[Heading, ...]:
        return tuple(each for leg in self.legs for each in leg.stop.exercises)

    @property
    def next(self) -> StopProgress | None:
        """Return the stop of the last check or, if this stop is done, the stop after it; None at the end."""
        checked = [(leg.last_check, place) for place, leg in enumerate(self.legs) if leg.last_check]
        return self._to_do_from(max(checked)[1] if checked else 0)

    @property
    def last_check(self) -> str:
        return max((leg.last_check for leg in self.legs), default="")

    def after(self, notebook: str) -> StopProgress | None:
        """Return the next stop after a notebook, or None if the path ends with the notebook.

        If all later stops are done, the next stop is an earlier one.
        """
        names = [leg.stop.notebook for leg in self.legs]
        if notebook not in names[:-1]:
            return None
        return self._to_do_from(names.index(notebook) + 1)

    def _to_do_from(self, place: int) -> StopProgress | None:
        return next((leg for leg in (*self.legs[place:], *self.legs[:place]) if leg.left), None)

    @property
    def words(self) -> str:
        """Return a sentence about the path's goal or, once the goal is reached, about the result."""
        return self.path.goal if self.next else f"You have finished this path. {self.path.end}"

    @property
    def minutes(self) -> int:
        """Return the remaining minutes: the path's minutes, times the remaining share of exercise minutes."""
        whole = sum(each.minutes for each in self.exercises)
        left = sum(each.minutes for leg in self.legs for each in leg.left)
        return round(self.path.minutes * left / whole)


@dataclass(frozen=True, repr=False)
class Home:
    """The home page, displayed as text or as a page with links.

    latest: the last checked exercise. chosen: the name of the path chosen by the learner.
    missing: the notebooks whose files are not in the learner's folder, for example because of a new name.
    """

    places: tuple[Place, ...]
    ways: tuple[PathProgress, ...] = ()
    note: str = ""
    latest: str = ""
    chosen: str = ""
    missing: frozenset[str] = frozenset()

    @property
    def missing_words(self) -> str:
        """Return a message about the missing files and how to get them, or ""."""
        if not self.missing:
            return ""
        files = join_words([f"{name}.ipynb" for name in sorted(self.missing)])
        them = "it" if len(self.missing) == 1 else "them"
        return f"Missing in your folder: {files}. `course lab` copies {them} there."

    @property
    def ended(self) -> PathProgress | None:
        """Return the short path that the learner has just finished, until they work on a different part."""
        done = (way for way in self.ways if way.is_short and not way.next)
        return next(
            (way for way in done if self.latest in (each.name for each in way.exercises)), None
        )

    @property
    def onward(self) -> tuple[PathProgress, ...]:
        """Return the unfinished short paths or, if there are none, the long path."""
        to_do = tuple(way for way in self.ways if way.next)
        return tuple(way for way in to_do if way.is_short) or to_do

    @property
    def way(self) -> PathProgress | None:
        """Return the current path: the path chosen by the learner, or the short path of the last check.

        Exercises outside all short paths are extras, so they never change the path. The long path is current
        only if it was chosen, or if all work so far is outside the short paths.
        """
        to_do = [way for way in self.ways if way.next]
        chosen = (way for way in to_do if way.path.name == self.chosen)
        checked = [way for way in to_do if way.is_short and way.last_check]
        # among equal paths, max() returns the first one, in the order of the file
        latest = max(checked, key=lambda way: way.last_check, default=None)
        return next(chosen, None) or latest or self._way_without_checks(to_do)

    def _way_without_checks(self, to_do: Sequence[PathProgress]) -> PathProgress | None:
        """Return the first path with a notebook that was opened, otherwise the first unfinished path."""
        begun = {place.notebook for place in self.places if place.state == "begun"}
        opened = (way for way in to_do if any(leg.stop.notebook in begun for leg in way.legs))
        checked = (way for way in to_do if way.last_check)
        return next(checked, None) or next(opened, None) or next(iter(to_do), None)

    @property
    def here(self) -> StopProgress | None:
        """Return the next stop of the current path."""
        return self.way.next if self.way else None

    def __repr__(self) -> str:
        lines = [*self._words(), ""]
        for way in self.ways:
            done = sum(leg.state == "done" for leg in way.legs)
            left = f", {hours(way.minutes)} of reading and exercises left" if way.minutes else ""
            lines += [
                f"{way.path.title}: {done} of {len(way.legs)} stops done{left}",
                f"  {way.words}",
            ]
        width = max((len(place.title) for place in self.places), default=0)
        for part, own in groupby(self.places, lambda each: each.part):
            lines += ["", part]
            for place in own:
                again = sum(quiz.state == "tried" for quiz in place.quizzes)
                quizzes = f"{place.right_quiz_count}/{len(place.quizzes)} quizzes"
                quizzes += f" ({again} to try again)" if again else ""
                left = (
                    f", {place.remaining_minutes} min of exercises left"
                    if place.remaining_minutes
                    else ""
                )
                lines.append(
                    f"  {_SIGNS[place.state]} {place.title:<{width}}  {place.state:<7}  {place.passed_count}/"
                    f"{place.core_count} exercises, {quizzes}{left}"
                )
        return "\n".join(lines)

    def _words(self) -> list[str]:
        words = ["Every core exercise has passed."]
        if self.ended:
            words = [f"You have finished {self.ended.path.title}. {self.ended.path.end}", SHOW_IT]
            words += [
                f"Next path: {way.path.title}, {hours(way.minutes)}. {way.path.goal}"
                for way in self.onward
            ]
        elif self.way and self.here:
            words = [
                f"Next: {self.here.next_title}.",
                f"Path: {self.way.path.title}, about {hours(self.way.minutes)} of reading and exercises "
                f"left. {CHOOSE_PATH}",
            ]
        return [*words, *filter(None, [self.missing_words, self.note])]

    def _repr_html_(self) -> str:
        return live_page(_PAGE, {}, self.map_html())

    def map_html(self) -> str:
        """Return the page as static HTML."""
        parts = [(part, list(own)) for part, own in groupby(self.places, lambda each: each.part)]
        return render_page(
            "home.html",
            home=self,
            parts=parts,
            hours=hours,
            is_reference=is_reference,
            docs=[(words, f"docs/{name}") for words, name in _DOCS if docs_page(name)],
            signs=_SIGNS,
            answers=_ANSWERS,
            answered=_ANSWERED,
            picture=path_picture(self.ended.path) if self.ended else "",
            show_it=SHOW_IT,
        )


def home() -> Home:
    """Return the home page: the next step, the paths, and the map of the course with links to notebooks."""
    progress = read_progress()
    found = notebook_places(progress, list(headings().values()))
    latest = max(
        progress.exercises, key=lambda name: progress.exercises[name].last.when, default=""
    )
    ways = path_progress(progress, found)
    missing = missing_notebooks([place.notebook for place in found])
    return Home(found, ways, progress.note, latest, progress.path, missing)


def missing_notebooks(names: Iterable[str]) -> frozenset[str]:
    """Return the notebooks missing from the learner's folder; empty if `course lab` never filled it."""
    try:
        work = find_workspace().work
        if not (work / HOME_FILE).is_file():
            return frozenset()
        files = {file.stem for file in work.glob("*.ipynb")}
    except (WorkspaceError, OSError):
        return frozenset()
    return frozenset(name for name in names if files.isdisjoint(all_names_of(name)))


def path_progress(progress: Progress, places: Sequence[Place]) -> tuple[PathProgress, ...]:
    """Return the progress on each path. places: the places of all notebooks."""
    by_name = {place.notebook: place for place in places}

    def stop_progress(stop: Stop) -> StopProgress:
        left = (each for each in stop.exercises if not progress.has_passed(each.name))
        checks = (progress.exercises.get(each.name) for each in stop.exercises)
        last_check = max((each.last.when for each in checks if each), default="")
        return StopProgress(stop, by_name[stop.notebook], tuple(left), last_check)

    return tuple(
        PathProgress(path, tuple(map(stop_progress, path.stops))) for path in paths().values()
    )


def docs_folder() -> Path | None:
    """Return the folder with the documentation, or None if this copy of the course has none."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    return docs if docs.is_dir() else None


def notebook_places(progress: Progress, exercises: Sequence[Heading]) -> tuple[Place, ...]:
    """Return each notebook's place, in the course's order.

    If no notebook has been begun, the first notebook, or the notebook after the last finished notebook, is
    "next".
    """
    found: list[Place] = []
    for notebook in dict.fromkeys(exercise.notebook for exercise in exercises):
        own = [e for e in exercises if e.notebook == notebook]
        core = [e for e in own if not e.further]
        left = [e for e in core if not progress.has_passed(e.name)]
        asked = _quiz_states(progress, notebook)
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
    """Write the home page with the current map into a learner's folder; return its path."""
    output = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": {"text/html": home()._repr_html_(), "text/plain": repr(home())},
    }
    if (docs := docs_folder()) and not (shown := work / "docs").exists():
        with suppress(OSError):  # JupyterLab opens only files inside its root folder
            shown.symlink_to(docs, target_is_directory=True)
    words = (
        "# Where you are\n\nThis page follows your work while it is open. If it does not change, run "
        "the cell below (Shift+Enter)."
    )
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "home-1", "metadata": {}, "source": words},
        {
            "cell_type": "code",
            "id": "home-2",
            "metadata": {"jupyter": {"source_hidden": True}},
            "execution_count": 1,
            "outputs": [output],
            "source": _CELL,
        },
    ]
    path = work / HOME_FILE
    notebook = {
        "cells": cells,
        "metadata": notebook_metadata(),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    write_notebook(path, notebook)
    sign_notebook(path)
    return path


def _quiz_states(progress: Progress, notebook: str) -> tuple[QuizState, ...]:
    def state(quiz: str) -> str:
        answers = progress.quizzes.get(quiz)
        return "open" if answers is None else "right" if answers.correct else "tried"

    cells = matching_cells(notebook, r'predict\("([^"]+)"\)')
    ids = quizzes_of_notebooks().get(notebook, ())
    return tuple(QuizState(quiz, state(quiz), cells.get(quiz, "")) for quiz in ids)


@cache
def title_of(notebook: str) -> str:
    """Return a notebook's title, such as "02 · Blocking send and recv", or else its file's name."""
    path = file_of(notebook)
    if path is None:
        return notebook
    with path.open(encoding="utf-8") as file:
        match = re.search(r'"# (\d\d · [^"\\]+)', file.read(20_000))
    return match[1] if match else notebook
