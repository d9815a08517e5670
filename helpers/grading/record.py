"""What grading one submission gave: plain data, written as one JSON file that every report reads.

`grader` makes a `Record`, `store` writes and reads it, `reports` turn it into pages and gradebooks.
The format is `FORMAT`; its schema is `record.schema.json` next to this file. Every text in it may come
from a submission: it is data, and every view escapes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

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

    rows: (rank, given, expected, got, problem) as short texts. credit: from 0 to 1.
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
    visible run, in base64, or "". answer: the answer's source as it was tried. key: its place in the
    cache. cached: it was not tried again.
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
    def was_too_slow(self) -> bool:
        """Whether the clock alone spoke against it: then it is tried again in the next run."""
        slow = Outcome.TOO_SLOW.value
        return slow in (self.outcome, *(case.outcome for case in self.cases))


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
        data = asdict(self)
        data["status"] = self.status.value
        return {"format": FORMAT, "points": self.points, "out_of": self.out_of, **data}


def from_json(data: dict[str, Any]) -> Record:
    """Make a record of what `as_json` gave. Raise ValueError where it is none, or of another format."""
    if data.get("format") != FORMAT:
        raise ValueError(f"a record of format {data.get('format')!r}; this course reads {FORMAT}")
    try:
        exercises = tuple(exercise_from_json(each) for each in data["exercises"])
        protection = data["protection"]
        return Record(
            learner=str(data["learner"]),
            file=str(data["file"]),
            notebook=str(data["notebook"]),
            status=Status(data["status"]),
            sha256=str(data["sha256"]),
            message=str(data["message"]),
            notes=tuple(data["notes"]),
            exercises=exercises,
            protection=Protection(
                protection["level"], tuple(protection["stops"]), tuple(protection["does_not_stop"])
            ),
            versions=dict(data["versions"]),
            seconds=float(data["seconds"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the record is damaged: {error!r}") from None


def exercise_from_json(data: dict[str, Any]) -> ExerciseRecord:
    """Make one exercise's record of JSON's own types. Raise KeyError or TypeError where it is none."""
    cases = tuple(case_from_json(case) for case in data["cases"])
    lists = {name: tuple(data[name]) for name in ("notes", "flags")}
    lists["reported"] = tuple(data.get("reported", ()))  # records of before have none
    return ExerciseRecord(**{**data, "cases": cases, **lists})


def case_from_json(data: dict[str, Any]) -> CaseRecord:
    """Make one case's record of JSON's own types. Raise KeyError or TypeError where it is none."""
    rows = tuple((int(r), *map(str, rest)) for r, *rest in data["rows"])
    return CaseRecord(**{**data, "rows": rows, "broken": tuple(data["broken"])})
