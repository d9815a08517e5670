"""Write gradebooks as CSV: the class's own, and those that Canvas and Moodle import.

`write_reports` calls these. An empty cell means that a person has to decide: nothing was handed in, a file
cannot be read, or grading failed. A zero is a grade.

A spreadsheet must never run a cell as a formula. Such cells get an apostrophe in front, as OWASP recommends
(CSV Injection); numbers stay numbers. Only the columns by which a platform identifies people are written
unchanged, because it would not recognize `'@ann`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence

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


class UnchangedCell(str):
    """A cell of the platform's own export that identifies a person, so it is written unchanged."""


Cell = UnchangedCell | str | float | None

_MAX_CELL_CHARS = 1000
_NUMBER_PATTERN = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
# The start of a cell, even if a spreadsheet uses a different separator; then characters that spreadsheets
# skip; then the start of a formula, in all forms that they treat as the plain one.
_CELL_START = r"(^|[,;|\t])"
_QUOTES = "\"'`´‘’“”„«»"
_INVISIBLE_CHARS = (
    "\u00ad\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0001-\U000e007f"
    "\u200b-\u200f\u2060-\u2064\ufeff\ufffd"
)
_SKIPPED = rf"([\s{_QUOTES}{_INVISIBLE_CHARS}]*)"
_FORMULA = "(?=[=+\\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−])"
_FORMULA_START_PATTERN = re.compile(_CELL_START + _SKIPPED + _FORMULA)

# Moodle rejects a file with a grade above 100, unless its site allows unlimited grades.
_MOODLE_MAX_POINTS = 100.0
# The columns before "ID" in Canvas's export (lib/gradebook_exporter.rb).
_CANVAS_NAMES = (("Student",), ("LastName", "FirstName"))
_MOODLE_IDENTIFIERS = ("Email address", "Username", "ID number")
_MOODLE_NAMES = ("First name", "Last name", "Surname", "Full name", *_MOODLE_IDENTIFIERS)


def gradebook(course: Course) -> bytes:
    """Return one row for each learner, with every notebook and exercise. Has a BOM, for spreadsheets."""
    exercises = _exercises(course)
    head: list[Cell] = ["Learner", "Points", "Out of", "Percent", "Files", "Remarks"]
    head += [f"{line(name)} ({number(out_of)})" for name, out_of in course.notebooks.items()]
    head += list(exercises.values())
    return csv_bytes(
        [head, *(_row(course, each, exercises) for each in course.standings)], bom=True
    )


def canvas_import(course: Course, match: RosterMatch) -> bytes | None:
    """Return the file that Canvas's Gradebook imports, or None if the roster is not a Canvas export.

    The roster's columns from Student to Section are kept. Other assignments are left out, because importing
    them would undo grades given since the export. If a column has the notebook's name, with or without
    Canvas's number, it is filled in; otherwise Canvas creates an assignment.
    """
    columns = match.roster.columns
    first, last = match.roster.column_index("ID"), match.roster.column_index("Section")
    if first is None or last is None or columns[:first] not in _CANVAS_NAMES:
        return None
    notebooks = list(course.notebooks)
    who = range(last + 1)
    head: list[Cell] = [UnchangedCell(columns[at]) for at in who]
    head += [_column_of(name, columns) for name in notebooks]
    to_reach: list[Cell] = ["    Points Possible", *[""] * last]
    to_reach += list(course.notebooks.values())
    rows = _roster_rows(course, match, who, lambda name, points: points)
    return csv_bytes([head, to_reach, *rows], bom=False)


def moodle_import(course: Course, match: RosterMatch) -> bytes | None:
    """Return the file that Moodle imports, or None if no column identifies learners.

    In a grading worksheet the column "Grade" is filled in. In a grade export the columns with names and
    user ids are kept; a notebook of more than 100 points is in percent.
    """
    roster = match.roster
    if None not in (roster.column_index("Identifier"), roster.column_index("Grade")):
        return _worksheet(course, match)
    if all(roster.column_index(name) is None for name in _MOODLE_IDENTIFIERS):
        return None
    who = sorted({at for name in _MOODLE_NAMES if (at := roster.column_index(name)) is not None})
    scale = {
        name: 100 / out_of if out_of > _MOODLE_MAX_POINTS else 1.0
        for name, out_of in course.notebooks.items()
    }
    head: list[Cell] = [UnchangedCell(roster.columns[at]) for at in who]
    head += [
        _column_of(name, roster.columns) + " (%)" * (scale[name] != 1) for name in course.notebooks
    ]
    most = course.notebooks

    def scaled(name: str, points: float) -> float:
        # Moodle rejects a grade above the maximum, so a bonus cannot exceed it.
        return min(points, most[name]) * scale[name]

    rows = _roster_rows(course, match, who, scaled)
    return csv_bytes([head, *rows], bom=False)


def _worksheet(course: Course, match: RosterMatch) -> bytes:
    """Return Moodle's grading worksheet of one assignment with its column "Grade" filled in.

    A grade is the share of the points times the row's "Maximum Grade", or the points if there is none.
    Everything else stays, because mod/assign/feedback/offline reads Identifier, Grade and the time of the
    last grade.
    """
    roster = match.roster
    grade, most = roster.column_index("Grade"), roster.column_index("Maximum Grade")
    assert grade is not None
    standings = {each.learner: each for each in course.standings}
    rows: list[list[Cell]] = [[UnchangedCell(name) for name in roster.columns]]
    for cells, learner in zip(roster.rows, match.rows, strict=True):
        row: list[Cell] = [UnchangedCell(cell) for cell in cells]
        standing = standings.get(learner or "")
        if standing and standing.records and all(grade_of(x) is not None for x in standing.records):
            row[grade] = standing.share * _maximum(
                "" if most is None else cells[most], standing.out_of
            )
        rows.append(row)
    return csv_bytes(rows, bom=False)


def _maximum(cell: str, default: float) -> float:
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return default


def changes_csv(changes: Sequence[Change]) -> bytes:
    """Return one row for each exercise whose points changed, the latest last. Has a BOM."""
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


def _roster_rows(
    course: Course, match: RosterMatch, who: Iterable[int], scaled: Callable[[str, float], float]
) -> list[list[Cell]]:
    standings = {each.learner: each for each in course.standings}
    places = list(who)
    rows = []
    for cells, learner in zip(match.roster.rows, match.rows, strict=True):
        row: list[Cell] = [UnchangedCell(cells[at]) for at in places]
        for notebook in course.notebooks:
            record = None if learner is None else standings[learner].record_of(notebook)
            points = grade_of(record)
            row.append(None if points is None else scaled(notebook, points))
        rows.append(row)
    return rows


def _column_of(notebook: str, columns: Sequence[str]) -> str:
    """Return the export's own name of a notebook's column: `name (123)`, `Assignment: name (Real)`."""
    own = re.compile(
        rf"(?:[^:]{{1,40}}: ?)?{re.escape(notebook)}(?: \((?:\d+|Real)\))?", re.IGNORECASE
    )
    return next((name for name in columns if own.fullmatch(name)), line(notebook))


def _exercises(course: Course) -> dict[tuple[str, str], str]:
    """Return each exercise's column head, by notebook and name, in the course's order."""
    found: dict[tuple[str, str], str] = {}
    for standing in course.standings:
        for record in standing.records:
            for each in record.exercises:
                if not (each.out_of or each.points):  # the policy makes it worth nothing
                    continue
                key = (record.notebook, each.name)
                found.setdefault(
                    key,
                    f"{line(each.number, 12)} {line(each.name)} "
                    f"({'bonus, ' if is_bonus(each) else ''}{number(each.out_of)})",
                )
    order = {name: at for at, name in enumerate(course.notebooks)}
    # within a notebook, exercises are in the order in which they first occurred
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
    row += [grade_of(standing.record_of(name)) for name in course.notebooks]
    return row + [points.get(key) for key in exercises]


def _remarks(standing: Standing) -> str:
    found = {_status(each) for each in standing.records if each.status is not Status.GRADED}
    found |= {line(note, 300) for each in standing.records for note in each.notes}
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

    bom: begin with a byte order mark. Without it Excel reads the system's old code page.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_format_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


def escape_formula(text: str) -> str:
    """Return a text on one line as a cell that no spreadsheet runs, with an apostrophe before formulas."""
    flat = re.sub(r"[\t\r\n\v\f]", " ", clip_text(text, _MAX_CELL_CHARS))
    return flat if _NUMBER_PATTERN.fullmatch(flat) else _FORMULA_START_PATTERN.sub(r"\1'\2", flat)


def _format_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, UnchangedCell):
        return str(cell)
    return escape_formula(cell) if isinstance(cell, str) else number(cell)
