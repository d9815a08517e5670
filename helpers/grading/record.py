"""What grading one submission gave: plain data, written as one JSON file that every report reads.

`judging` makes an `ExerciseRecord` of each set of cases, `grader` a `Record` of all, `batch` writes and
reads it, `reports` turn it into pages and gradebooks. The format is `FORMAT`; its schema is
`record.schema.json` next to this file. Every text in it may come from a submission: it is data, and every
view escapes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from helpers.checks.exercise import Exercise
from helpers.checks.result import Outcome

FORMAT = 1


class Status(Enum):
    """What became of a submission as a whole.

    HARNESS_FAULT: for some exercise the reference fails here as well; nobody loses points for that.
    """

    GRADED = "graded"
    UNREADABLE = "unreadable"
    HARNESS_FAULT = "harness fault"


@dataclass(frozen=True)
class CaseRecord:
    """One case. Of a hidden one only what gives away neither inputs nor prints.

    rows: (rank, given, expected, got, problem) as short texts, where a value is wrong. credit: from 0 to 1.
    """

    label: str
    hidden: bool
    outcome: str
    credit: float
    rows: tuple[tuple[int, str, str, str, str], ...] = ()
    broken: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""


@dataclass(frozen=True)
class ExerciseRecord:
    """One exercise of one submission.

    outcome: an `Outcome` of the checks, or of grading alone: "out of memory", "flooded", "harness
    fault". notes: repairs made to find the answer. flags: places where the instructor should look; none
    is a verdict. reported: what nothing but the ranks vouches for. picture: a PNG of the learner's own
    visible run, in base64, or "". trace: what was recorded of that run, as JSON, or "". answer: the
    answer's source as it was tried. key: its place in the cache. cached: it was not tried again.
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
    def looks(self) -> tuple[str, ...]:
        """The first flags, and what such an answer could have made up, if anything."""
        if not self.flags or not self.reported:
            return self.flags[:10]
        return *self.flags[
            :10
        ], f"only the answer's own ranks vouch for: {', '.join(self.reported)}"

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASSED.value

    @property
    def outcomes(self) -> set[str]:
        """Its own and those of its cases."""
        return {self.outcome, *(case.outcome for case in self.cases)}

    @property
    def was_too_slow(self) -> bool:
        """Whether the clock alone spoke against it: then it is tried again in the next run."""
        return Outcome.TOO_SLOW.value in self.outcomes


def record_of(exercise: Exercise, outcome: str, points: float = 0.0, **rest: Any) -> ExerciseRecord:
    """Return what is written down of an exercise. rest: further fields of `ExerciseRecord`."""
    about = {"number": exercise.number, "heading": exercise.heading, "further": exercise.further}
    fields = {"name": exercise.name, "out_of": exercise.points, **about, **rest}
    return ExerciseRecord(outcome=outcome, points=points, **fields)


@dataclass(frozen=True)
class Protection:
    """In which sandbox answers ran: the level, what it stops, and what it does not."""

    level: str
    stops: tuple[str, ...] = ()
    does_not_stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """What became of one submission.

    learner: as the roster or the file's place names them. file: below the class's folder. notebook: the
    one that it is a copy of, "" if unknown. sha256: of the file. versions: of python, torch, the course.
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
        """Return the record as JSON's own types, with the format's number."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {"format": FORMAT, "points": self.points, "out_of": self.out_of, **data}


def from_json(data: dict[str, Any]) -> Record:
    """Make a record of what `as_json` gave. Raise ValueError where it is none, or of another format."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else None
        raise ValueError(f"a record of format {found!r}; this course reads {FORMAT}")
    try:
        return msgspec.convert(data, Record)
    except msgspec.ValidationError as error:
        raise ValueError(f"the record is damaged: {error}") from None


def read_records(out: Path) -> list[Record]:
    """Return the records of a batch, in the order of their files' names. Raise ValueError if damaged."""
    return [
        from_json(json.loads(p.read_text(encoding="utf-8")))
        for p in sorted((out / "records").glob("*.json"))
    ]
