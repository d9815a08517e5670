"""The class as reports see it: for each learner the records that count, and what they add up to.

`write_reports` makes a `Course` once and hands it to every report, so that all tell the same points.

    Record, Record, ... --by learner, by notebook--> Standing, Standing, ... in a Course
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reports.outcomes import Kind, is_fault, kind_of
from helpers.grading.reports.slugs import page_names
from helpers.grading.reports.text import sound


@dataclass(frozen=True)
class Standing:
    """One learner.

    records: those that count, one for each notebook of the class, in its order. spare: further files of the
    same notebooks, and files of other notebooks, which count for nothing. missing: notebooks of the class
    that were not handed in. out_of: what the whole class could reach, less what could not be graded here.
    """

    learner: str
    page: str
    records: tuple[Record, ...]
    spare: tuple[Record, ...]
    missing: tuple[str, ...]
    points: float
    out_of: float

    @property
    def share(self) -> float:
        return min(1.0, max(0.0, self.points / self.out_of)) if self.out_of > 0 else 0.0

    @cached_property
    def exercises(self) -> tuple[ExerciseRecord, ...]:
        return tuple(each for record in self.records for each in record.exercises)

    def count(self, kind: Kind) -> int:
        """Count the exercises of one kind."""
        return sum(kind_of(each.outcome) is kind for each in self.exercises)

    @property
    def unreadable(self) -> tuple[Record, ...]:
        return tuple(each for each in self.records if each.status is Status.UNREADABLE)

    def record_of(self, notebook: str) -> Record | None:
        """Return the record that counts for one notebook, None if none was handed in."""
        return next((each for each in self.records if each.notebook == notebook), None)


@dataclass(frozen=True)
class Course:
    """All learners, in the order of their names, and for each notebook the points to reach.

    stray: notebooks that some handed in and that do not count, as they are not the class's.
    """

    title: str
    standings: tuple[Standing, ...]
    notebooks: dict[str, float]
    stray: tuple[str, ...] = ()


def course_of(records: Sequence[Record], title: str, named: Sequence[str] = ()) -> Course:
    """Sort records into a class. Of several files of one notebook the one with most points counts.

    named: the class's notebooks; where none are, those that a quarter of the learners handed in; where there
    are three or more, two at least: then nobody's stray notebook changes what another has reached.
    """
    seen = {record.notebook for record in records} - {""}
    stray = seen - {*named} if named else _handed_in_by_few(records) & seen
    reach = _points_to_reach([each for each in records if each.notebook not in stray])
    notebooks: dict[str, float] = dict.fromkeys(sorted({*named} | seen - stray), 0.0)
    for (notebook, _), out_of in reach.items():
        notebooks[notebook] = notebooks.get(notebook, 0.0) + out_of
    notebooks.pop("", None)
    learners: dict[str, list[Record]] = {}
    for record in records:
        learners.setdefault(record.learner, []).append(_with_notebook(record, notebooks))
    pages = page_names(sorted(learners))
    order = sorted(learners, key=lambda name: (name.casefold(), name))
    standings = tuple(
        _standing(name, pages[name], learners[name], notebooks, reach) for name in order
    )
    return Course(title, standings, notebooks, tuple(sorted(stray)))


def _handed_in_by_few(records: Iterable[Record]) -> set[str]:
    by: dict[str, set[str]] = {}
    for record in records:
        by.setdefault(record.notebook, set()).add(record.learner)
    most = len({learner for learners in by.values() for learner in learners})
    least = max(most / 4, 2 if most > 2 else 1)
    return {notebook for notebook, learners in by.items() if len(learners) < least}


def graded_points(record: Record) -> float:
    """Add up a record's points, without what could not be graded here."""
    return sum(sound(each.points) for each in record.exercises if not is_fault(each))


def versions_of(record: Record) -> tuple[tuple[str, str], ...]:
    """Return what a record was graded with, in order; what tells secrets apart is nobody's business."""
    return tuple(sorted((name, each) for name, each in record.versions.items() if name != "secret"))


def has_fault(record: Record) -> bool:
    """Say whether some of a record could not be graded here."""
    return record.status is Status.HARNESS_FAULT or any(map(is_fault, record.exercises))


def _points_to_reach(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """Return each exercise's points, by notebook and name: where grading failed they are 0 in a record."""
    found: dict[tuple[str, str], float] = {}
    for record in records:
        for each in record.exercises:
            key = (record.notebook, each.name)
            found[key] = max(found.get(key, 0.0), sound(each.out_of))
    return found


def _with_notebook(record: Record, notebooks: Iterable[str]) -> Record:
    """Take the notebook from the file's name where the file could not be read."""
    if record.notebook:
        return record
    stem = PurePosixPath(record.file).stem
    return replace(record, notebook=next((name for name in notebooks if name in stem), ""))


def _standing(
    learner: str,
    page: str,
    records: Sequence[Record],
    notebooks: dict[str, float],
    reach: dict[tuple[str, str], float],
) -> Standing:
    best: dict[tuple[str, str], Record] = {}
    for record in sorted(records, key=_rank):
        if record.notebook and record.notebook not in notebooks:
            continue
        # files whose notebook is unknown are not rivals of each other
        best.setdefault((record.notebook, "" if record.notebook else record.file), record)
    counted = tuple(best[key] for key in sorted(best, key=lambda key: (not key[0], *key)))
    spare = tuple(each for each in records if not any(each is one for one in counted))
    present = {record.notebook for record in counted}
    lost = sum(reach[one.notebook, x.name] for one in counted for x in one.exercises if is_fault(x))
    return Standing(
        learner=learner,
        page=page,
        records=counted,
        spare=spare,
        missing=tuple(name for name in notebooks if name not in present),
        points=sum(map(graded_points, counted)),
        out_of=max(0.0, sum(notebooks.values()) - lost),
    )


def _rank(record: Record) -> tuple[bool, float, str]:
    return record.status is Status.UNREADABLE, -graded_points(record), record.file
