"""The class as a matrix of learners and exercises, with a page for each learner that shows the answers.

`write_reports` calls both. For the instructor alone: they show hidden cases and everybody's code. The matrix
sorts, filters and searches with a script of its own, from files alone; what is heavy is on the other pages.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from helpers.grading.points.counted import is_bonus, override_of
from helpers.grading.record import CaseRecord, ExerciseRecord
from helpers.grading.reports.class_page import Alike, Similar
from helpers.grading.reports.learner_page import (
    late_text,
    looks,
    rows,
    summary_of,
)
from helpers.grading.reports.outcomes import MOST_CASES, Kind, kind_of
from helpers.grading.reports.pages import checked_png, render
from helpers.grading.reports.slugs import plain_name
from helpers.grading.reports.standing import Course, Standing
from helpers.grading.reports.text import line, number, numbered, sound

_SCRIPT = Path(__file__).parent / "templates" / "matrix.js"
_MOST_CODE = 20_000
# Of answers that are shown next to one.
_MOST_SIMILAR = 3


class Neighbours:
    """For each answer the similar ones, the rarest first."""

    def __init__(self, course: Course, similar: Sequence[Similar]) -> None:
        self._standings = {each.learner: each for each in course.standings}
        self._code = {
            (each.learner, x.name): x.answer for each in course.standings for x in each.exercises
        }
        self._found: dict[tuple[str, str], list[tuple[str, Alike]]] = {}
        for pair in similar:
            one, other = pair.learners
            for alike in pair.alike:
                self._found.setdefault((one, alike.exercise), []).append((other, alike))
                self._found.setdefault((other, alike.exercise), []).append((one, alike))

    def of(self, learner: str, exercise: str) -> list[tuple[Standing, Alike, str]]:
        """Return whose answers are similar, how much, and their code."""
        found = self._found.get((learner, exercise), ())[:_MOST_SIMILAR]
        return [
            (self._standings[other], alike, self._code.get((other, exercise), ""))
            for other, alike in found
            if other in self._standings
        ]


def matrix_page(course: Course, neighbours: Neighbours) -> bytes:
    """Return the matrix as HTML in UTF-8."""
    columns = _columns(course)
    places = {key: at for at, key in enumerate(columns)}
    kinds: dict[str, int] = {}
    learners = []
    for standing in course.standings:
        cells: list[Any] = [0] * len(columns)
        for record in standing.records:
            for each in record.exercises:
                outcome = kinds.setdefault(line(each.outcome, 40), len(kinds))
                notes = (
                    bool(override_of(each)),
                    bool(each.flags),
                    bool(neighbours.of(standing.learner, each.name)),
                )
                sum_of_notes = sum(on << at for at, on in enumerate(notes))
                points = float(number(each.points))
                cells[places[record.notebook, each.name]] = [outcome, points, sum_of_notes]
        learners.append(
            {
                "name": line(standing.learner),
                "page": standing.page,
                "points": float(number(standing.points)),
                "out_of": float(number(standing.out_of)),
                "cells": cells,
            }
        )
    data = {
        "learners": learners,
        "exercises": list(columns.values()),
        "kinds": [(outcome, kind_of(outcome).value) for outcome in kinds],
    }
    return render("matrix.html", script=_script(), title=course.title, data=_embedded(data))


def player_file(standing: Standing, exercise: ExerciseRecord) -> str:
    """Return the name of the page with the player of a learner's run."""
    return f"{standing.page.removesuffix('.html')}-{plain_name(exercise.name)}.html"


def review_page(
    course: Course,
    standing: Standing,
    neighbours: Neighbours,
    players: Collection[str] = frozenset(),
) -> bytes:
    """Return one learner's answers, with hidden cases and similar answers, as HTML in UTF-8.

    players: the files that `player_file` names and that exist.
    """
    return render(
        "review.html",
        title=course.title,
        standing=standing,
        summary=summary_of(standing),
        similar=lambda exercise: neighbours.of(standing.learner, exercise.name),
        cases_of=_cases_of,
        place=_place,
        player_of=lambda exercise: player_file(standing, exercise),
        players=players,
        most_code=_MOST_CODE,
        late_text=late_text,
        looks=looks,
        rows=rows,
        checked_png=checked_png,
    )


def _columns(course: Course) -> dict[tuple[str, str], dict[str, Any]]:
    """Return each exercise that somebody has, in the course's order."""
    found: dict[tuple[str, str], ExerciseRecord] = {}
    for standing in course.standings:
        for record in standing.records:
            for each in record.exercises:
                found.setdefault((record.notebook, each.name), each)
    order = sorted(found, key=lambda key: key[0])  # within a notebook as they were met
    return {
        key: {
            "number": line(found[key].number or found[key].name, 12),
            "title": numbered(found[key]),
            "notebook": line(key[0]),
            "weight": sound(found[key].out_of),
            "bonus": is_bonus(found[key]),
            "place": _place(found[key]),
        }
        for key in order
    }


def _place(exercise: ExerciseRecord) -> str:
    """Return the part of an address that leads to an exercise."""
    return f"e-{plain_name(exercise.name)}"


def _cases_of(exercise: ExerciseRecord) -> Iterator[tuple[str, int, Sequence[CaseRecord]]]:
    """Return the visible cases, and the hidden ones, with how many of each passed."""
    for name, is_hidden in (("Visible cases", False), ("Hidden cases", True)):
        cases = [case for case in exercise.cases if case.hidden is is_hidden][:MOST_CASES]
        if cases:
            yield name, sum(kind_of(case.outcome) is Kind.PASSED for case in cases), cases


@cache
def _script() -> Markup:
    return Markup(_SCRIPT.read_text(encoding="utf-8"))


def _embedded(data: Any) -> Markup:
    """Return JSON that ends no script element, whatever texts are in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
