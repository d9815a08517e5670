"""What GitHub Actions shows: annotations at a submission's file, and a job's summary in Markdown.

`course grade --github` prints `github_annotations`; `write_reports` writes `summary`, which a workflow
appends to $GITHUB_STEP_SUMMARY. GitHub shows ten errors and ten warnings of a step, and 1 MiB of a summary.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence

from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reports.learner_page import summary_of
from helpers.grading.reports.outcomes import (
    Kind,
    exercise_text,
    first_visible,
    is_fault,
    kind_of,
    told_outcome,
)
from helpers.grading.reports.standing import Course, Standing
from helpers.grading.reports.text import line, number, numbered, percent, shown
from helpers.grading.roster import RosterMatch

_MOST_ROWS = 1000
_SAFE = set(" ,;()+-")
_ESCAPED = {ord(mark): f"&#{ord(mark)};" for mark in string.punctuation if mark not in _SAFE}


def github_annotations(records: Sequence[Record], folder: str = "") -> Iterator[str]:
    """Return a workflow command for each exercise that did not pass, and each file that cannot be read.

    folder: where the submissions lie below the repository's root. A notebook is JSON: its line is 1.
    """
    for record in records:
        file = "/".join(filter(None, (folder.rstrip("/"), record.file)))
        if record.status is Status.UNREADABLE:
            yield _command("error", file, "cannot be read", record.message)
        for exercise in record.exercises:
            if (kind := kind_of(exercise.outcome)) is not Kind.PASSED:
                level = "warning" if kind is Kind.FAULT else "error"
                title = f"{numbered(exercise)}: {told_outcome(exercise)}"
                yield _command(level, file, title, _short(exercise))


def summary(course: Course, match: RosterMatch | None = None) -> bytes:
    """Return the class as Markdown, in which nothing from a record is markup, link or mention."""
    rows = [_row(standing) for standing in course.standings[:_MOST_ROWS]]
    lines = [f"## {plain(course.title)}", "", "| learner | points | share | exercises |"]
    lines += ["|---|---:|---:|---|", *rows]
    if len(course.standings) > _MOST_ROWS:
        lines += ["", f"and {len(course.standings) - _MOST_ROWS} more learners"]
    looks = list(_looks(course))[:_MOST_ROWS]
    lines += ["", "### Look here, no verdict", "", *looks] if looks else []
    if match:
        lines += _roster("On the roster, nothing handed in", match.without_submission)
        lines += _roster("Not on the roster", match.without_entry)
    return ("\n".join(lines) + "\n").encode("utf-8")


def plain(text: str, limit: int = 200) -> str:
    """Return a text that Markdown shows letter by letter, in a table as well."""
    return line(text, limit).translate(_ESCAPED)


def _row(standing: Standing) -> str:
    points = f"{number(standing.points)} of {number(standing.out_of)}"
    told = plain(summary_of(standing, told_outcome))
    cells = (plain(standing.learner), points, percent(standing.share), told)
    return f"| {' | '.join(cells)} |"


def _looks(course: Course) -> Iterator[str]:
    for standing in course.standings:
        for record in standing.records:
            who = plain(standing.learner)
            if record.status is Status.UNREADABLE:
                yield f"- {who}: {plain(record.file)} cannot be read: {plain(record.message)}"
            for exercise in record.exercises:
                where = plain(numbered(exercise))
                if is_fault(exercise):
                    yield f"- {who}: {where}: harness fault: {plain(exercise.message)}"
                for flag in exercise.looks:
                    yield f"- {who}: {where}: {plain(flag)}"


def _roster(head: str, names: Sequence[str]) -> list[str]:
    return ["", f"**{head}:** {', '.join(map(plain, names[:_MOST_ROWS]))}"] if names else []


def _short(exercise: ExerciseRecord) -> str:
    worst = first_visible(exercise)
    return (worst.advice if worst and not is_fault(exercise) else "") or exercise_text(exercise)


def _command(level: str, file: str, title: str, message: str) -> str:
    where = f"file={_property(line(file, 400))},line=1,title={_property(line(title))}"
    return f"::{level} {where}::{_data(shown(message, 2000) or line(title))}"


def _data(text: str) -> str:
    """Escape as actions/toolkit does (packages/core, command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
