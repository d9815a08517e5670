"""Write gradebooks as CSV: the class's gradebook, and the file for import into the roster's platform.

`write_reports` calls these functions. An empty cell means that a person has to decide, because nothing was
handed in, a file cannot be read, or grading failed. A zero, however, is a grade.

A spreadsheet must never run a cell as a formula. Formulas are prefixed with an apostrophe, as OWASP
recommends (CSV Injection); numbers stay numbers. Only the columns with which a platform identifies people are
written unchanged, because it would not recognize `'@ann`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from helpers.grading.platforms import platform_of
from helpers.grading.platforms.protocol import GradedRoster, Platform
from helpers.grading.points.changes import Change
from helpers.grading.points.counted import is_bonus
from helpers.grading.record import Record, Status
from helpers.grading.reports.outcomes import is_fault
from helpers.grading.reports.standing import (
    Course,
    Standing,
    graded_points,
    has_fault,
    late_text,
)
from helpers.grading.reports.text import clip_text, line, number
from helpers.grading.roster import RosterMatch
from helpers.grading.table import Cell, UnchangedCell

_MAX_CELL_CHARS = 1000
_NUMBER_PATTERN = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
# The start of a cell, even if a spreadsheet uses a different separator, followed by characters skipped by
# spreadsheets, and by the start of a formula, including all variants of `=`, `+`, `-` and `@`.
_CELL_START = r"(^|[,;|\t])"
_QUOTES = "\"'`´‘’“”„«»"
_INVISIBLE_CHARS = (
    "\u00ad\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0001-\U000e007f"
    "\u200b-\u200f\u2060-\u2064\ufeff\ufffd"
)
_SKIPPED = rf"([\s{_QUOTES}{_INVISIBLE_CHARS}]*)"
_FORMULA = "(?=[=+\\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−])"
_FORMULA_START_PATTERN = re.compile(_CELL_START + _SKIPPED + _FORMULA)


def gradebook(course: Course) -> bytes:
    """Return one row for each learner, with all notebooks and exercises, as CSV with a BOM."""
    exercises = _exercises(course)
    head: list[Cell] = ["Learner", "Points", "Out of", "Percent", "Files", "Remarks"]
    head += [
        f"{line(name)} ({number(out_of)})" for name, out_of in course.points_by_notebook.items()
    ]
    head += list(exercises.values())
    return csv_bytes(
        [head, *(_row(course, each, exercises) for each in course.standings)], bom=True
    )


def platform_import(platform: Platform, course: Course, match: RosterMatch) -> bytes | None:
    """Return the file for import into a platform, or None if the roster is not a platform's export."""
    if platform_of(match.roster) is not platform:
        return None
    table = platform.export(_graded_roster(course, match))
    return None if table is None else csv_bytes(table, bom=False)


def _graded_roster(course: Course, match: RosterMatch) -> GradedRoster:
    standings = {each.learner: each for each in course.standings}
    rows = [standings.get(learner or "") for learner in match.rows]
    names = {name: line(name) for name in course.points_by_notebook}
    return GradedRoster(
        match.roster,
        {names[name]: out_of for name, out_of in course.points_by_notebook.items()},
        tuple(
            {
                shown: None if row is None else grade_of(row.record_of(name))
                for name, shown in names.items()
            }
            for row in rows
        ),
        tuple(
            (row.share, row.out_of)
            if row and row.records and all(grade_of(x) is not None for x in row.records)
            else None
            for row in rows
        ),
    )


def changes_csv(changes: Sequence[Change]) -> bytes:
    """Return one row for each exercise whose points changed, latest last, as CSV with a BOM."""
    head: list[Cell] = ["When", "Learner", "Exercise", "Before", "After", "Why"]
    rows: list[list[Cell]] = [
        [x.when, line(x.learner), x.exercise, x.before, x.after, x.why] for x in changes
    ]
    return csv_bytes([head, *rows], bom=True)


def grade_of(record: Record | None) -> float | None:
    """Return a notebook's points, or None if a person has to decide."""
    unreadable = record is not None and record.status is Status.UNREADABLE and not record.exercises
    if record is None or unreadable or has_fault(record):
        return None
    return graded_points(record)


def _exercises(course: Course) -> dict[tuple[str, str], str]:
    """Return {(notebook, exercise): column heading}, in the course's order."""
    found: dict[tuple[str, str], str] = {}
    for standing in course.standings:
        for record in standing.records:
            for each in record.exercises:
                if not (each.out_of or each.points):  # worth no points by the policy
                    continue
                key = (record.notebook, each.name)
                found.setdefault(
                    key,
                    f"{line(each.number, 12)} {line(each.name)} "
                    f"({'bonus, ' if is_bonus(each) else ''}{number(each.out_of)})",
                )
    order = {name: at for at, name in enumerate(course.points_by_notebook)}
    # within a notebook, exercises are in the order of their first occurrence
    return dict(sorted(found.items(), key=lambda item: order.get(item[0][0], len(order))))


def _row(course: Course, standing: Standing, exercises: dict[tuple[str, str], str]) -> list[Cell]:
    points = {
        (record.notebook, each.name): None if is_fault(each) else each.points
        for record in standing.records
        for each in record.exercises
    }
    files = "; ".join(line(record.file) for record in standing.records if record.file)
    row: list[Cell] = [
        line(standing.learner),
        standing.points,
        standing.out_of,
        100 * standing.share,
    ]
    row += [files, _remarks(standing)]
    row += [grade_of(standing.record_of(name)) for name in course.points_by_notebook]
    return row + [points.get(key) for key in exercises]


def _remarks(standing: Standing) -> str:
    found = {_status(each) for each in standing.records if each.status is not Status.GRADED}
    found |= {line(note, 300).rstrip(".") for each in standing.records for note in each.notes}
    found |= {standing.own_text.rstrip(".")} if standing.own else set()
    found |= {"not handed in: " + line(name) for name in standing.missing}
    found |= {f"{line(name)}: {late_text(late)}" for name, late in standing.late.items()}
    found |= {f"{line(name)} is dropped" for name in standing.dropped}
    found |= set(standing.overrides)
    return "; ".join(sorted(found))


def _status(record: Record) -> str:
    return f"{record.status.value}: {line(record.message or record.file, 300)}"


def csv_bytes(rows: Iterable[Sequence[Cell]], *, bom: bool) -> bytes:
    """Return rows as UTF-8 CSV with commas and CRLF (RFC 4180).

    bom: whether to begin with a byte order mark. Without it, Excel assumes the system's legacy code page.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_format_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


def escape_formula(text: str) -> str:
    """Return `text` as a one-line cell that no spreadsheet runs, with an apostrophe before formulas."""
    flat = re.sub(r"[\t\r\n\v\f]", " ", clip_text(text, _MAX_CELL_CHARS))
    return flat if _NUMBER_PATTERN.fullmatch(flat) else _FORMULA_START_PATTERN.sub(r"\1'\2", flat)


def _format_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, UnchangedCell):
        return str(cell)
    return escape_formula(cell) if isinstance(cell, str) else number(cell)
