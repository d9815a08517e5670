"""Compare the points with the points from the last run, and report each change and its reason.

OUT/grades.json (of the last run), Standing, ... --> Change, ... --reports--> changes.csv, class.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from helpers.grading.points.counted import CountedExercise
from helpers.grading.record import Status
from helpers.grading.reports.outcomes import is_fault
from helpers.grading.reports.standing import Course

FILE = "grades.json"
FORMAT = 1
_MAX_CHANGES = 20_000


@dataclass(frozen=True)
class Grade:
    """The points of one exercise of one learner, and all their dependencies.

    Args:
        points: 0 if the notebook is dropped.
        share: The recorded share of the exercise's points.
        sha256: The digest of the file.
        course: The version of the checks.
        given: The reason for points set by a person, or "" for other points.
    """

    learner: str
    notebook: str
    exercise: str
    points: float
    weight: float
    outcome: str
    share: float
    late: float
    dropped: bool
    given: str
    sha256: str
    course: str


@dataclass(frozen=True)
class Change:
    """One exercise whose points changed. when: the time (UTC) of the run that found the change."""

    when: str
    learner: str
    exercise: str
    before: float
    after: float
    why: str


@dataclass(frozen=True)
class Grades:
    """The content of grades.json. changes: the changes in all runs, the latest last."""

    grades: tuple[Grade, ...] = ()
    changes: tuple[Change, ...] = ()


def grades_of(course: Course) -> tuple[Grade, ...]:
    """Return each exercise's points, for comparison with the next run."""
    found = []
    for standing in course.standings:
        for record in standing.records:
            late, dropped = standing.late.get(record.notebook), record.notebook in standing.dropped
            for each in record.exercises:
                if not isinstance(each, CountedExercise) or is_fault(each):
                    continue
                given = each.override
                found.append(
                    Grade(
                        record.learner,
                        record.notebook,
                        each.name,
                        0.0 if dropped else each.points,
                        each.out_of,
                        each.outcome,
                        each.share,
                        late.factor if late else 1.0,
                        dropped,
                        f"{given.reason}{given.by and f' ({given.by})'}" if given else "",
                        record.sha256,
                        record.versions.get("course", ""),
                    )
                )
    return tuple(found)


def changes_between(
    before: Iterable[Grade], after: Iterable[Grade], when: str, course: Course | None = None
) -> Iterator[Change]:
    """Yield a change for each exercise that counted before and now has different points.

    course: the class of `after`, used to find out why an exercise no longer counts.
    """
    # New exercises are not changes, so the first run reports nothing.
    now = {(each.learner, each.exercise): each for each in after}
    for old in before:
        new = now.get((old.learner, old.exercise))
        if new is None:
            if old.points:
                why = _why_missing(old, course)
                yield Change(when, old.learner, old.exercise, old.points, 0.0, why)
        elif new.points != old.points:
            why = "; ".join(_reasons(old, new))
            yield Change(when, old.learner, old.exercise, old.points, new.points, why)


def _why_missing(old: Grade, course: Course | None) -> str:
    """Return the reason why an exercise no longer counts."""
    if course is None:
        return "its notebook is no longer handed in, or no longer the class's"
    if old.notebook not in course.points_by_notebook:
        return "its notebook is no longer the class's"
    standing = next((each for each in course.standings if each.learner == old.learner), None)
    records = () if standing is None else (*standing.records, *standing.spare)
    for record in records:
        if record.notebook not in ("", old.notebook):
            continue
        if record.status is Status.UNREADABLE:
            return f"a file now handed in cannot be read: {record.file}"
        if any(each.name == old.exercise and is_fault(each) for each in record.exercises):
            return "it could not be graded this time, because of a fault of this machine"
    return "its notebook is no longer handed in"


def _reasons(old: Grade, new: Grade) -> Iterator[str]:
    if old.given != new.given:
        yield f"set by hand: {new.given}" if new.given else "no longer set by hand"
        return
    if new.given:
        yield "other points were set by hand"
        return
    if (old.outcome, old.share) != (new.outcome, new.share):
        if old.sha256 != new.sha256:
            cause = "another file was handed in"
        elif old.course != new.course:
            cause = "the checks have changed"
        else:
            cause = "it was tried again"
        yield f"{cause}: {old.outcome} before, {new.outcome} now"
    if old.weight != new.weight:
        yield f"its weight was {old.weight:g}, and is now {new.weight:g}"
    if old.late != new.late:
        yield f"of a late notebook, {100 * old.late:g} % counted before, and {100 * new.late:g} % count now"
    if old.dropped != new.dropped:
        yield "its notebook is dropped now" if new.dropped else "its notebook is no longer dropped"


def read_grades(out: Path) -> Grades:
    """Return the grades of the last run, or empty grades if the file does not exist or is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        data = json.loads((out / FILE).read_bytes())
        if isinstance(data, dict) and data.pop("format", None) == FORMAT:
            return msgspec.convert(data, Grades)
    return Grades()


def as_json(grades: Grades) -> bytes:
    """Return the content of the file, limited to the latest changes."""
    kept = Grades(grades.grades, grades.changes[-_MAX_CHANGES:])
    # use ASCII, because a name may contain half a surrogate pair
    return json.dumps({"format": FORMAT, **msgspec.to_builtins(kept)}).encode()
