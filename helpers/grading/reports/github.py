"""Write annotations of a submission's file and a job's summary in Markdown for GitHub Actions.

`course grade --github` prints `github_annotations`. `write_reports` writes `class_summary`, which a workflow
appends to $GITHUB_STEP_SUMMARY. GitHub shows at most ten errors and ten warnings per step, and 1 MiB of a
summary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reports.class_page import NEEDS_ATTENTION, places_to_look
from helpers.grading.reports.outcomes import (
    Kind,
    exercise_text,
    failed_cases,
    is_fault,
    kind_of,
    shown_outcome,
    visible_cases,
)
from helpers.grading.reports.pages import render
from helpers.grading.reports.standing import Course
from helpers.grading.reports.text import clip_text, line, numbered_title
from helpers.grading.roster import RosterMatch


def class_summary(course: Course, match: RosterMatch | None = None) -> bytes:
    """Return the class as Markdown. No text from a record can act as markup, link or mention."""
    return render(
        "summary.md",
        course=course,
        looks=list(places_to_look(course)),
        needs_attention=NEEDS_ATTENTION,
        match=match,
    )


def github_annotations(records: Sequence[Record], folder: str = "") -> Iterator[str]:
    """Yield a workflow command for each exercise that did not pass, and each unreadable file.

    folder: the path of the submissions below the repository's root. The line is always 1, because a notebook
    is JSON.
    """
    for record in records:
        file = "/".join(filter(None, (folder.rstrip("/"), record.file)))
        if record.status is Status.UNREADABLE:
            yield _workflow_command("error", file, "cannot be read", record.message)
        for exercise in record.exercises:
            if (kind := kind_of(exercise.outcome)) is not Kind.PASSED:
                level = "warning" if kind is Kind.FAULT else "error"
                title = f"{numbered_title(exercise)}: {shown_outcome(exercise)}"
                yield _workflow_command(level, file, title, _short_advice(exercise))


def _short_advice(exercise: ExerciseRecord) -> str:
    advice = [
        case.advice for case in failed_cases(visible_cases(exercise))[:1] if not is_fault(exercise)
    ]
    return "".join(advice) or exercise_text(exercise)


def _workflow_command(level: str, file: str, title: str, message: str) -> str:
    where = f"file={_escape_property(line(file, 400))},line=1,title={_escape_property(line(title))}"
    return f"::{level} {where}::{_escape_data(clip_text(message, 2000) or line(title))}"


def _escape_data(text: str) -> str:
    """Escape `text` in the same way as actions/toolkit (packages/core, command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
