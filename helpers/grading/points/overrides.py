"""Read points set by a person from `overrides.csv`. They replace the graded points in every run.

    learner,exercise,points,reason,by,when

`command` reads the file before grading, `counted` applies the lines, and every page and gradebook shows them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.checks.headings import UnknownExercise, find_heading
from helpers.grading.grade_options import CannotGrade
from helpers.grading.table import Row, TableError, parse_number, read_table
from helpers.views.plain import normalize_name

FILE = "overrides.csv"
COLUMNS = ("learner", "exercise", "points", "reason", "by", "when")
_MAX_POINTS = 10_000.0


class OverrideError(CannotGrade):
    """An override cannot be used. The message is one line with the file, the line, the problem and advice."""


@dataclass(frozen=True)
class Override:
    """One line of the file. exercise: the name of its function. points: the points replacing the policy's."""

    learner: str
    exercise: str
    points: float
    reason: str = ""
    by: str = ""
    when: str = ""


def read_overrides(path: Path, learners: Mapping[str, str]) -> tuple[Override, ...]:
    """Read the file. Raise OverrideError at the first wrong line.

    learners: {text that may denote a learner: the learner's name}.
    """
    try:
        (_, header), *rows = read_table(path, "The overrides") or [Row(1, ())]
    except TableError as error:
        raise OverrideError(str(error)) from None
    columns = tuple(cell.strip().casefold() for cell in header)
    if sorted(columns) != sorted(COLUMNS):
        raise OverrideError(f"{path}, line 1: the columns must be {', '.join(COLUMNS)}.")
    found: dict[tuple[str, str], int] = {}
    overrides = []
    for line, cells in rows:
        where = f"{path}, line {line}"
        if len(cells) != len(columns):
            raise OverrideError(
                f"{where}: {len(cells)} cells, but there are {len(columns)} columns. Put text with a "
                "comma in quotes."
            )
        named = dict(zip(columns, map(str.strip, cells), strict=True))
        override = _override(named, learners, where)
        key = override.learner, override.exercise
        if key in found:
            raise OverrideError(
                f"{where}: line {found[key]} is for {override.exercise} of {override.learner!r}, too. "
                "Keep one of them."
            )
        found[key] = line
        overrides.append(override)
    return tuple(overrides)


def _override(cells: dict[str, str], learners: Mapping[str, str], place: str) -> Override:
    learner = learners.get(normalize_name(cells["learner"]))
    if learner is None:
        raise OverrideError(
            f"{place}: no learner is called {cells['learner']!r}. Write the name as in "
            f"gradebook.csv or the roster. A learner without a file must be on the roster "
            f"(--roster) or in groups.csv."
        )
    try:
        exercise = find_heading(cells["exercise"]).name
    except UnknownExercise as error:
        raise OverrideError(f"{place}: {error.args[0]}") from None
    try:
        points = parse_number(cells["points"])
    except ValueError:
        points = math.nan
    if not 0 <= points <= _MAX_POINTS:
        raise OverrideError(
            f"{place}: points must be a number from 0 to {_MAX_POINTS:,.0f}, not {cells['points']!r}."
        )
    if not cells["reason"]:
        raise OverrideError(
            f"{place}: the reason is missing. Write one, because the learner reads it."
        )
    return Override(learner, exercise, points, cells["reason"], cells["by"], cells["when"])
