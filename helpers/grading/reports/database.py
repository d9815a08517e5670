"""Write the class as an SQLite file, for further queries: `datasette results/records.sqlite`.

`write_reports` calls `database`. The file contains both the check's points and the final points.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from helpers.grading.points.changes import Change
from helpers.grading.points.counted import CountedExercise
from helpers.grading.reports.outcomes import is_fault
from helpers.grading.reports.standing import Course
from helpers.grading.reports.text import clip_text, finite_or_zero

_MAX_CELL_CHARS = 20_000
_TABLES = {
    "learners": "page primary key, learner, points real, out_of real, share real",
    "submissions": "learner, file, notebook, status, sha256, seconds real, days_late integer,"
    " dropped integer, sandbox, course",
    "exercises": "learner, notebook, exercise, number, outcome, share real, points real, out_of real,"
    " bonus integer, fault integer, set_by_hand real, reason, by, flags, seconds real, answer",
    "cases": "learner, exercise, place integer, label, hidden integer, outcome, credit real, message, advice",
    "changes": "at, learner, exercise, before real, after real, why",
}


def database(course: Course, changes: Sequence[Change]) -> bytes:
    """Return the content of the file."""
    # Build the database in memory, so that, like every other report, the file is written completely or not at
    # all.
    with closing(sqlite3.connect(":memory:")) as made:
        for table, columns in _TABLES.items():
            made.execute(f"create table {table} ({columns})")
        for table, row in _rows(course, changes):
            marks = ", ".join("?" * len(row))
            made.execute(f"insert into {table} values ({marks})", [_clean(each) for each in row])
        made.commit()
        return made.serialize()


def _rows(course: Course, changes: Sequence[Change]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for standing in course.standings:
        who = standing.learner
        yield "learners", (standing.page, who, standing.points, standing.out_of, standing.share)
        for record in standing.records:
            late, dropped = standing.late.get(record.notebook), record.notebook in standing.dropped
            yield (
                "submissions",
                (
                    who,
                    record.file,
                    record.notebook,
                    record.status.value,
                    record.sha256,
                    record.seconds,
                    late.days if late else 0,
                    dropped,
                    record.protection.level,
                    record.versions.get("course", ""),
                ),
            )
            for each in record.exercises:
                assert isinstance(each, CountedExercise)
                given = each.override
                yield (
                    "exercises",
                    (
                        who,
                        record.notebook,
                        each.name,
                        each.number,
                        each.outcome,
                        each.share,
                        each.points,
                        each.out_of,
                        each.bonus,
                        is_fault(each),
                        given.points if given else None,
                        given.reason if given else None,
                        given.by if given else None,
                        "\n".join(each.flags),
                        each.seconds,
                        each.answer,
                    ),
                )
                for place, case in enumerate(each.cases):
                    told = (None, None) if case.hidden else (case.message, case.advice)
                    about = (case.label, case.hidden, case.outcome, case.credit)
                    yield "cases", (who, each.name, place, *about, *told)
    for change in changes:
        yield (
            "changes",
            (change.when, change.learner, change.exercise, change.before, change.after, change.why),
        )


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clip_text(value, _MAX_CELL_CHARS)
    return finite_or_zero(value) if isinstance(value, float) else value
