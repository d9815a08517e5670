"""Compute a class for reports: the records that count for each learner, and their sum.

`command` makes a `Course` once and passes it to every report, so that all reports show the same final points.
The policy is applied here, in this order: weights, the best copy of each notebook, lateness, overrides,
dropped notebooks. The records on the disk keep the check's points.

    Record, Record, ... --by learner, by notebook--> Standing, Standing, ... in a Course
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

from helpers.check_result import Outcome
from helpers.checks.headings import headings
from helpers.checks.headings import notebooks as known_notebooks
from helpers.grading.names import find_notebook_names
from helpers.grading.points.counted import (
    apply_override,
    apply_weights,
    empty_record,
    is_bonus,
    reduce_points,
)
from helpers.grading.points.overrides import Override
from helpers.grading.points.policy import DEFAULT_POLICY, Policy
from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reports.copies import (
    combine_copies,
    is_course_solution,
    solutions_text,
    split_by_notebook,
)
from helpers.grading.reports.outcomes import Kind, is_fault, kind_of, override_text
from helpers.grading.reports.slugs import page_names
from helpers.grading.reports.text import finite_or_zero, percent
from helpers.views.plain import plural


@dataclass(frozen=True)
class Lateness:
    """A notebook's late days, the number of free days among them, and the remaining share of its points."""

    days: int
    free: int
    factor: float


def late_text(lateness: Lateness) -> str:
    """Return a sentence on a notebook's lateness and its cost."""
    free = f", of which {lateness.free} free" if lateness.free else ""
    return f"{plural(lateness.days, 'day')} late{free}: {percent(lateness.factor)} of its points count."


@dataclass(frozen=True)
class Standing:
    """One learner's standing.

    Args:
        records: The records that count, with `Counted` exercises: one for each notebook, in the class's
            order.
        spare: Further files of the same notebooks, and files of notebooks outside the class. They do not
            count.
        own: Files with the course's solutions, which do not count either.
        missing: Notebooks of the class that were not handed in.
        late: {notebook: its lateness}.
        dropped: Notebooks that the policy leaves out.
        out_of: The maximum number of points without a bonus, excluding exercises that could not be graded
            here and dropped notebooks.
    """

    learner: str
    page: str
    records: tuple[Record, ...]
    spare: tuple[Record, ...]
    own: tuple[Record, ...]
    missing: tuple[str, ...]
    late: dict[str, Lateness]
    dropped: tuple[str, ...]
    points: float
    out_of: float

    @property
    def share(self) -> float:
        return min(1.0, max(0.0, self.points / self.out_of)) if self.out_of > 0 else 0.0

    @cached_property
    def exercises(self) -> tuple[ExerciseRecord, ...]:
        return tuple(each for record in self.records for each in record.exercises)

    def count(self, kind: Kind) -> int:
        """Return the number of exercises of one kind."""
        return sum(kind_of(each.outcome) is kind for each in self.exercises)

    @property
    def unreadable(self) -> tuple[Record, ...]:
        return tuple(each for each in self.records if each.status is Status.UNREADABLE)

    @property
    def overrides(self) -> tuple[str, ...]:
        """A sentence on each exercise with points set by a person."""
        return tuple(filter(None, map(override_text, self.exercises)))

    @property
    def own_text(self) -> str:
        """A sentence on the files with the course's solutions, or "" if there are none."""
        return solutions_text(self.own)

    def record_of(self, notebook: str) -> Record | None:
        """Return the record that counts for a notebook, or None if the notebook was not handed in."""
        return next((each for each in self.records if each.notebook == notebook), None)


@dataclass(frozen=True)
class Course:
    """All learners, sorted by name, and the points that each notebook is worth.

    Args:
        extra_notebooks: Handed-in notebooks that do not belong to the class, so they do not count.
        rare: Notebooks that count although most learners have not handed them in.
        policy: The policy for counting points.
    """

    title: str
    standings: tuple[Standing, ...]
    points_by_notebook: dict[str, float]
    extra_notebooks: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()
    policy: Policy = DEFAULT_POLICY


def course_of(
    records: Sequence[Record],
    title: str,
    named: Sequence[str] = (),
    policy: Policy = DEFAULT_POLICY,
    overrides: Sequence[Override] = (),
    handed_in: Mapping[tuple[str, str], float] | None = None,
    references: Mapping[str, str] | None = None,
    people: Sequence[str] = (),
) -> Course:
    """Sort records into a class. If a notebook has several files, the best copy of each exercise counts.

    Args:
        named: The class's notebooks; by default, the notebooks handed in by at least a quarter of the
            learners and, in a class of three or more, by at least two. So a stray notebook of one learner
            does not change other learners' shares.
        handed_in: The time at which each (learner, file) was handed in, in seconds since the epoch. Files
            without a time are not late.
        references: The source of each reference solution. A file that consists of reference solutions earns
            no points.
        people: Learners who are included even without a file, in addition to learners with overrides.
    """
    records = [
        apply_weights(part, policy) for record in records for part in split_by_notebook(record)
    ]
    own = [record for record in records if is_course_solution(record, references or {})]
    rest = [record for record in records if not any(record is each for each in own)]
    hands = _learners_by_notebook(_with_notebook(record, known_notebooks()) for record in rest)
    seen = {record.notebook for record in rest if record.notebook}
    stray = seen - {*named} if named else _rare_notebooks(hands) & seen
    reach = _max_points([each for each in rest if each.notebook not in stray])
    notebooks: dict[str, float] = dict.fromkeys(sorted({*named} | seen - stray), 0.0)
    for (notebook, _), out_of in reach.items():
        notebooks[notebook] = notebooks.get(notebook, 0.0) + out_of
    learners: dict[str, list[Record]] = {record.learner: [] for record in records}
    for name in (*people, *(override.learner for override in overrides)):
        learners.setdefault(name, [])
    for record in rest:
        learners[record.learner].append(_with_notebook(record, notebooks))
    most = len(set().union(*hands.values())) / 2
    rare = [name for name in notebooks if name not in named and len(hands[name]) < most]
    pages = page_names(sorted(learners))
    order = sorted(learners, key=lambda name: (name.casefold(), name))
    given: dict[str, list[Override]] = {}
    for override in overrides:
        given.setdefault(override.learner, []).append(override)
    course = Course(title, (), notebooks, tuple(sorted(stray)), tuple(rare), policy)
    standings = tuple(
        _build_standing(
            name,
            pages[name],
            learners[name],
            [record for record in own if record.learner == name],
            course,
            given.get(name, ()),
            handed_in or {},
        )
        for name in order
    )
    return replace(course, standings=standings)


def _learners_by_notebook(records: Iterable[Record]) -> dict[str, set[str]]:
    """Return {notebook: learners who handed it in}, with an attempt or as an unreadable file."""
    by: dict[str, set[str]] = {}
    for record in records:
        blank = all(each.outcome == Outcome.NOT_ATTEMPTED.value for each in record.exercises)
        hands = by.setdefault(record.notebook, set())
        if not record.exercises or not blank:
            hands.add(record.learner)
    by.pop("", None)
    return by


def _rare_notebooks(hands: Mapping[str, set[str]]) -> set[str]:
    most = len(set().union(*hands.values()))
    if not most:  # if there are no attempts, the class's notebooks are unknown
        return set()
    least = max(most / 4, 2 if most > 2 else 1)
    return {notebook for notebook, learners in hands.items() if len(learners) < least}


def graded_points(record: Record) -> float:
    """Return the sum of a record's points, excluding exercises that could not be graded here."""
    return sum(finite_or_zero(each.points) for each in record.exercises if not is_fault(each))


def max_points(record: Record) -> float:
    """Return a record's maximum points, excluding bonuses and exercises that could not be graded here."""
    counted = (x for x in record.exercises if not is_fault(x) and not is_bonus(x))
    return sum(finite_or_zero(each.out_of) for each in counted)


def versions_of(record: Record) -> tuple[tuple[str, str], ...]:
    """Return the versions that graded a record, in order, without the digest of the secret."""
    return tuple(sorted((name, each) for name, each in record.versions.items() if name != "secret"))


def has_fault(record: Record) -> bool:
    """Return whether a part of a record could not be graded here, and no person has decided yet."""
    faulty = record.status is Status.HARNESS_FAULT and not record.exercises
    return faulty or any(map(is_fault, record.exercises))


def _max_points(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """Return {(notebook, exercise): maximum points}, without bonuses."""
    found: dict[tuple[str, str], float] = {}
    for record in records:
        for each in record.exercises:
            if is_bonus(each):
                continue
            key = (record.notebook, each.name)
            found[key] = max(found.get(key, 0.0), finite_or_zero(each.out_of))
    return found


def _with_notebook(record: Record, notebooks: Iterable[str]) -> Record:
    """Return a record with its notebook's name, taken from the file's name if the file could not be read."""
    if record.notebook:
        return record
    named = find_notebook_names(PurePosixPath(record.file).name)
    return replace(record, notebook=next((name for name in notebooks if name in named), ""))


def _build_standing(
    learner: str,
    page: str,
    records: Sequence[Record],
    solutions: Sequence[Record],
    course: Course,
    overrides: Sequence[Override],
    handed_in: Mapping[tuple[str, str], float],
) -> Standing:
    notebooks, policy = course.points_by_notebook, course.policy
    days = {
        record.file: policy.days_late(
            learner, record.notebook, handed_in.get((learner, record.file))
        )
        for record in records
    }
    copies: dict[tuple[str, str], list[Record]] = {}
    for record in sorted(records, key=lambda each: _rank(each, policy, days[each.file])):
        if record.notebook and record.notebook not in notebooks:
            continue
        # files of unknown notebooks do not count as copies of each other
        copies.setdefault((record.notebook, "" if record.notebook else record.file), []).append(
            record
        )
    final, used = dict[tuple[str, str], Record](), list[Record]()
    for key, each in copies.items():
        final[key], contributing = combine_copies(each, days, policy.late.per_day, graded_points)
        used += contributing
    spare = tuple(each for each in records if not any(each is one for one in used))
    late = _lateness(policy, {each.notebook: days[each.file] for each in final.values()})
    for key, record in final.items():
        if record.notebook in late:
            final[key] = reduce_points(record, late[record.notebook].factor)
    for override in overrides:
        notebook = headings()[override.exercise].notebook
        if notebook in notebooks:
            before = final.get((notebook, "")) or empty_record(learner, notebook)
            final[notebook, ""] = apply_override(before, override, policy)
    counted = tuple(final[key] for key in sorted(final, key=lambda key: (not key[0], *key)))
    present = {record.notebook for record in counted}
    missing = tuple(name for name in notebooks if name not in present)
    reach = {**notebooks}
    for record in counted:
        lost = (x for x in record.exercises if is_fault(x) and not is_bonus(x))
        if record.notebook in reach:
            reach[record.notebook] -= sum(finite_or_zero(each.out_of) for each in lost)
    points = {record.notebook: graded_points(record) for record in counted}
    dropped = _notebooks_to_drop(policy, points, reach)
    return Standing(
        learner=learner,
        page=page,
        records=counted,
        spare=spare,
        own=tuple(solutions),
        missing=missing,
        late=late,
        dropped=dropped,
        points=sum(graded_points(each) for each in counted if each.notebook not in dropped),
        out_of=max(0.0, sum(each for name, each in reach.items() if name not in dropped)),
    )


def _rank(record: Record, policy: Policy, days: int) -> tuple[bool, float, str]:
    """Return a sort key that puts better copies of a notebook first, ignoring free late days."""
    points = graded_points(record) * max(0.0, 1 - policy.late.per_day * days)
    return record.status is Status.UNREADABLE, -points, record.file


def _lateness(policy: Policy, days: Mapping[str, int]) -> dict[str, Lateness]:
    """Spend the free late days on the notebooks in order. Return the late notebooks."""
    free, found = policy.late.free_days, {}
    for notebook in sorted(days):
        if days[notebook]:
            used = min(free, days[notebook])
            free -= used
            factor = max(0.0, 1 - policy.late.per_day * (days[notebook] - used))
            found[notebook] = Lateness(days[notebook], used, factor)
    return found


def _notebooks_to_drop(
    policy: Policy, points: Mapping[str, float], reach: Mapping[str, float]
) -> tuple[str, ...]:
    """Return the notebooks with the smallest shares, leaving at least one notebook."""
    shares = {name: points.get(name, 0.0) / most for name, most in reach.items() if most > 0}
    count = min(policy.drop_lowest, max(0, len(shares) - 1))
    return tuple(sorted(sorted(shares, key=lambda name: (shares[name], name))[:count]))
