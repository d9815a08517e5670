"""Define the result of grading one submission: plain data in one JSON file that all reports read.

`judge_process` makes an `ExerciseRecord` for each set of cases, and `grader` combines them into one `Record`.
`batch` writes and reads it, and `reports` turn it into pages and gradebooks. The number of the format is
`FORMAT`; its schema is `record.schema.json` next to this file. Any text in a record may come from a
submission, so every view must escape it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from helpers.check_result import CaseRecord, Outcome
from helpers.checks.exercise import Exercise

FORMAT = 1


class Status(Enum):
    """Outcome of a submission as a whole.

    HARNESS_FAULT: the reference solution of an exercise also fails on this machine, so the learner loses no
    points.
    """

    GRADED = "graded"
    UNREADABLE = "unreadable"
    HARNESS_FAULT = "harness fault"


@dataclass(frozen=True)
class ExerciseRecord:
    """One exercise of one submission.

    Args:
        outcome: An `Outcome` of the checks.
        notes: Repairs that were needed to find the answer.
        flags: Places for the instructor to check; they are not verdicts.
        reported: Results known only from the ranks' reports, which an answer could forge.
        picture: A PNG of the learner's visible run, in base64, or "".
        trace: The recorded events of the run in the picture, as JSON, or "".
        answer: The answer's source, as run.
        key: The record's key in the cache.
        cached: Whether the record came from the cache, without a new run.
    """

    name: str
    number: str
    heading: str
    outcome: str
    points: float
    out_of: float
    further: bool = False
    cases: tuple[CaseRecord, ...] = ()
    message: str = ""
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    seconds: float = 0.0
    picture: str = ""
    trace: str = ""
    answer: str = ""
    key: str = ""
    cached: bool = False

    @property
    def review_reasons(self) -> tuple[str, ...]:
        """The first flags and the results that could be forged, if there are any flags."""
        if not self.flags or not self.reported:
            return self.flags[:10]
        return *self.flags[
            :10
        ], f"reported only by the answer's own ranks: {', '.join(self.reported)}"

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASSED.value

    @property
    def outcomes(self) -> set[str]:
        """The outcomes of the exercise and of its cases."""
        return {self.outcome, *(case.outcome for case in self.cases)}

    @property
    def was_too_slow(self) -> bool:
        """Whether the answer failed only because of the clock. If so, the next batch runs it again."""
        return Outcome.TOO_SLOW.value in self.outcomes


def build_record(
    exercise: Exercise, outcome: str, points: float = 0.0, **rest: Any
) -> ExerciseRecord:
    """Return a record of an exercise. rest: the other fields of `ExerciseRecord`."""
    about = {"number": exercise.number, "heading": exercise.heading, "further": exercise.further}
    fields = {"name": exercise.name, "out_of": exercise.points, **about, **rest}
    return ExerciseRecord(outcome=outcome, points=points, **fields)


@dataclass(frozen=True)
class Protection:
    """The answers' sandbox: its level, the attacks that it stops, and those that it does not stop."""

    level: str
    stops: tuple[str, ...] = ()
    does_not_stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """The result of one submission.

    Args:
        learner: The name in the roster, or the name derived from the file's path.
        file: The path relative to the class's folder.
        notebook: The notebook of which the file is a copy, or "" if it is unknown.
        sha256: The digest of the file.
        versions: Versions of python, torch, the course and so on.
    """

    learner: str
    file: str
    notebook: str
    status: Status
    sha256: str = ""
    message: str = ""
    notes: tuple[str, ...] = ()
    exercises: tuple[ExerciseRecord, ...] = ()
    protection: Protection = field(default_factory=lambda: Protection("none"))
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def points(self) -> float:
        return sum(exercise.points for exercise in self.exercises)

    @property
    def out_of(self) -> float:
        return sum(exercise.out_of for exercise in self.exercises)

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON types, with the number of the format."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {"format": FORMAT, "points": self.points, "out_of": self.out_of, **data}


def from_json(data: dict[str, Any]) -> Record:
    """Return the record stored by `as_json`. Raise ValueError if it is damaged or in a different format."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else None
        raise ValueError(f"a record of format {found!r}; this course reads {FORMAT}")
    try:
        return msgspec.convert(data, Record)
    except msgspec.ValidationError as error:
        raise ValueError(f"the record is damaged: {error}") from None


def read_records(out: Path) -> list[Record]:
    """Return the records of a batch, sorted by file name. Raise ValueError if one is damaged."""
    return [
        from_json(json.loads(p.read_text(encoding="utf-8")))
        for p in sorted((out / "records").glob("*.json"))
    ]
