"""Gradescope's results.json (Autograder Specifications, "Output format") for one learner's records.

`gradescope_results` writes it inside Gradescope's container. What is for the instructor alone
is in a test of visibility "hidden", which Gradescope never shows to learners.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any

from helpers.checks.registry import exercises
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reports.outcomes import Kind, is_fault, kind_of
from helpers.grading.reports.standing import course_of
from helpers.grading.reports.text import line, numbered, shown, sound
from helpers.grading.reports.told import exercise_text

_NO_FILE = "Nothing was found to grade: the submission holds no notebook (.ipynb)."


def results(records: Sequence[Record], notebooks: Sequence[str] = ()) -> dict[str, Any]:
    """Return the results of one submission, which may hold several notebooks.

    An exercise that could not be graded here counts in full, until a person has looked: Gradescope
    knows no empty score, and nobody may lose points for it. Of several copies of a notebook the best counts.
    notebooks: those that count; where none are named, all that the submission holds.
    """
    course = course_of([replace(record, learner="") for record in records], "", notebooks)
    counted = [each for standing in course.standings for each in standing.records]
    spare = [each for standing in course.standings for each in standing.spare]
    unreadable = [each for each in spare if each.status is Status.UNREADABLE]
    tests = [_test(each) for record in counted for each in record.exercises]
    looks = "\n".join([*_looks(counted), *(_spare(each, course.notebooks) for each in spare)])
    if looks:
        tests.append(
            {
                "name": "Look here, no verdict",
                "output": looks,
                "output_format": "text",
                "visibility": "hidden",
            }
        )
    return {
        "score": round(sum(test.get("score", 0.0) for test in tests), 2),
        "execution_time": round(sum(max(0.0, sound(record.seconds)) for record in records)),
        "output": "\n\n".join(map(_file_text, [*counted, *unreadable])) or _NO_FILE,
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def results_json(records: Sequence[Record], notebooks: Sequence[str] = ()) -> bytes:
    """Return `results` as the bytes of results.json."""
    return json.dumps(results(records, notebooks), indent=1, allow_nan=False).encode("ascii")


def _test(exercise: ExerciseRecord) -> dict[str, Any]:
    out_of = sound(exercise.out_of)
    if is_fault(exercise) and not out_of and exercise.name in exercises():
        out_of = float(exercises()[exercise.name].points)
    test: dict[str, Any] = {
        "name": numbered(exercise) + ("" if not is_fault(exercise) else " (not graded here)"),
        "score": out_of if is_fault(exercise) else round(sound(exercise.points), 2),
        "max_score": out_of,
        "output": exercise_text(exercise),
        "output_format": "text",
        "visibility": "visible",
    }
    if exercise.number:
        test["number"] = line(exercise.number, 12)
    if not is_fault(exercise):
        test["status"] = "passed" if kind_of(exercise.outcome) is Kind.PASSED else "failed"
    return test


def _file_text(record: Record) -> str:
    head = line(record.notebook or record.file)
    if record.status is Status.UNREADABLE:
        return f"{head}: cannot be read, so nothing in it was graded. {shown(record.message)}"
    notes = [f"Note: {shown(note, 400)}" for note in record.notes[:20]]
    protection = f"Answers ran in this sandbox: {line(record.protection.level)}."
    return "\n".join(
        [
            f"{head}: graded.",
            *([shown(record.message)] if record.message else []),
            *notes,
            protection,
        ]
    )


def _spare(record: Record, notebooks: Container[str]) -> str:
    copy = f"a further copy of {line(record.notebook)}"
    what = copy if record.notebook in notebooks else "none of the class's notebooks"
    return f"{line(record.file)}: {what}, not counted"


def _looks(records: Sequence[Record]) -> Iterator[str]:
    for record in records:
        if record.status is Status.HARNESS_FAULT:
            yield f"{line(record.file)}: harness fault. {shown(record.message, 400)}"
        for exercise in record.exercises:
            if is_fault(exercise):
                said = shown(exercise.message, 400)
                yield f"{numbered(exercise)}: harness fault, full points given. {said}"
            for flag in exercise.looks:
                yield f"{numbered(exercise)}: {shown(flag, 400)}"
