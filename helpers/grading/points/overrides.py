"""Points that a person gives, read from `overrides.csv`: the last word on an exercise, whatever is regraded.

    learner,exercise,points,reason,by,when

`command` reads it before anything is graded; `counted` applies it; every page and gradebook shows it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.checks.headings import UnknownExercise, find_heading
from helpers.grading.setting import CannotGrade

FILE = "overrides.csv"
COLUMNS = ("learner", "exercise", "points", "reason", "by", "when")
_MOST_BYTES = 4 << 20
_MOST_POINTS = 10_000.0


class OverrideError(CannotGrade):
    """An override cannot be used. One line: the file, the line, what is wrong, what to do."""


@dataclass(frozen=True)
class Override:
    """One line. exercise: the name of its function. points: in place of those that the policy gives."""

    learner: str
    exercise: str
    points: float
    reason: str = ""
    by: str = ""
    when: str = ""


def read_overrides(path: Path, learners: frozenset[str]) -> tuple[Override, ...]:
    """Read the file. learners: those of the class. Raise OverrideError at the first line that is wrong."""
    rows = _rows(path)
    _, header = next(rows, (1, []))
    columns = tuple(cell.strip().casefold() for cell in header)
    if sorted(columns) != sorted(COLUMNS):
        raise OverrideError(f"{path}, line 1: the columns must be {', '.join(COLUMNS)}.")
    found: dict[tuple[str, str], int] = {}
    overrides = []
    for line, cells in rows:
        where = f"{path}, line {line}"
        if len(cells) != len(columns):
            raise OverrideError(
                f"{where}: {len(cells)} cells, but there are {len(columns)} columns. Put a text with a "
                "comma in quotes."
            )
        override = _override(
            dict(zip(columns, map(str.strip, cells), strict=True)), learners, where
        )
        key = override.learner, override.exercise
        if key in found:
            raise OverrideError(
                f"{where}: line {found[key]} is for {override.exercise} of {override.learner!r}, too. "
                "Keep one of them."
            )
        found[key] = line
        overrides.append(override)
    return tuple(overrides)


def _override(cells: dict[str, str], learners: frozenset[str], where: str) -> Override:
    learner = cells["learner"]
    if learner not in learners:
        raise OverrideError(
            f"{where}: no learner is called {learner!r}. Write the name as gradebook.csv or the roster does; "
            "a learner without a file must be on the roster (--roster) or in groups.csv."
        )
    try:
        exercise = find_heading(cells["exercise"]).name
    except UnknownExercise as error:
        raise OverrideError(f"{where}: {error.args[0]}") from None
    try:
        points = float(cells["points"])
    except ValueError:
        points = math.nan
    if not 0 <= points <= _MOST_POINTS:
        raise OverrideError(
            f"{where}: points must be a number from 0 to {_MOST_POINTS:,.0f}, not {cells['points']!r}."
        )
    if not cells["reason"]:
        raise OverrideError(f"{where}: there is no reason. The learner reads it: give one.")
    return Override(learner, exercise, points, cells["reason"], cells["by"], cells["when"])


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Return the rows that are not empty, each with the line on which it begins."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise OverrideError(f"The overrides {path} cannot be read: {error.strerror}.") from None
    if len(data) > _MOST_BYTES:
        raise OverrideError(f"The overrides {path} are larger than {_MOST_BYTES:,} bytes.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OverrideError(f"{path} is not UTF-8. Save it again as 'CSV UTF-8'.") from None
    head = text.partition("\n")[0]
    # Spreadsheets in many countries write semicolons.
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count), strict=True
    )
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise OverrideError(f"{path}, line {line}: this is not CSV: {error}.") from None
