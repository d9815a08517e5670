"""The table that `course progress` prints: `Progress -> str`."""

from __future__ import annotations

from collections.abc import Sequence

from helpers.checks.headings import Heading
from helpers.course.parts import part_of
from helpers.course.progress_format import Attempts, Progress, Score


def progress_table(progress: Progress, exercises: Sequence[Heading] = ()) -> str:
    """Show every exercise, by parts, with its best score, tries and hints, then quizzes and totals.

    Exercises that were tried but are not among `exercises` come last, under their own name.
    """
    known = {exercise.name for exercise in exercises}
    others = [Heading(name) for name in sorted({*progress.exercises} - known)]
    rows: list[tuple[str, ...]] = [("exercise", "", "best", "last", "tries", "hints")]
    listed = [*exercises, *others]
    part = ""
    for exercise in listed:
        if (now := _part(exercise)) != part:
            part = now
            rows.append((part, "", "", "", "", ""))
        rows.append(_row(exercise, progress))
    lines = _aligned(rows) if listed else ["No exercise has been checked yet."]
    return "\n".join([*lines, "", *_totals(progress, len(listed)), *_note(progress)])


def _part(exercise: Heading) -> str:
    return part_of(int(exercise.number.partition(".")[0])) if exercise.number else "Others"


def _row(exercise: Heading, progress: Progress) -> tuple[str, ...]:
    label = f"{exercise.number} {exercise.title}".strip()
    attempts = progress.exercises.get(exercise.name)
    hints = progress.hints.get(exercise.name, 0)
    return label, exercise.name, *_scores(attempts), str(hints or "")


def _scores(attempts: Attempts | None) -> tuple[str, str, str]:
    if attempts is None:
        return "", "", ""
    return _score(attempts.best), _score(attempts.last), str(attempts.tries)


def _score(score: Score) -> str:
    return f"{score.outcome} {score.points:g}/{score.out_of:g}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _totals(progress: Progress, count: int) -> list[str]:
    full = sum(attempts.best.share >= 1 for attempts in progress.exercises.values())
    right = sum(answers.correct for answers in progress.quizzes.values())
    return [
        f"{full} of {count} exercises with full points, {len(progress.exercises)} tried.",
        f"{right} of {len(progress.quizzes)} quizzes answered right in the end.",
    ]


def _note(progress: Progress) -> list[str]:
    return [progress.note] if progress.note else []
