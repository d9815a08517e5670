"""What a class finds hard: by exercise, and the mistakes that many make in the same way.

`class_page` shows both. A group is one mistake: the known wrong program that explained the answers, else what
happened in the first case that failed (who waited for whom, which rule was broken, what was wrong). Advice
that fits several mistakes does not join them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

from helpers.checks.mistakes import known_mistakes
from helpers.checks.registry import exercises
from helpers.grading.record import ExerciseRecord
from helpers.grading.reports.outcomes import Kind, first_failed, is_fault, kind_of
from helpers.grading.reports.standing import Course, Standing
from helpers.grading.reports.text import line, numbered, shown, sound

_SAID = 400
_MOST_ADVICE = 1000
_HIDDEN_ONLY = "All visible cases pass; a hidden one does not."
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_FACT = re.compile(r"\\{[^{}]*\\}")
_LIST = re.compile(r"\[[n,. ]*\]|\([n,. ]*\)")


@dataclass(frozen=True)
class Hardness:
    """How an exercise went, over those who handed its notebook in and could be graded."""

    title: str
    notebook: str
    graded: int
    passed: int
    not_attempted: int
    median_points: float
    out_of: float

    @property
    def share_passed(self) -> float:
        return self.passed / self.graded if self.graded else 0.0


@dataclass(frozen=True)
class Mistake:
    """The same thing going wrong in the same exercise.

    known: the title of the known mistake, "" if it is none. said: the checks' words to the first of them.
    """

    title: str
    known: str
    outcome: str
    said: str
    learners: tuple[Standing, ...]


def hardest(course: Course) -> tuple[Hardness, ...]:
    """Return every exercise, those first that the smallest share of the class passed."""
    tries: dict[tuple[str, str], list[ExerciseRecord]] = {}
    for _, notebook, exercise in _graded(course):
        tries.setdefault((notebook, exercise.name), []).append(exercise)
    found = [_hardness(notebook, each) for (notebook, _), each in tries.items()]
    return tuple(
        sorted(found, key=lambda one: (one.share_passed, one.median_points / (one.out_of or 1)))
    )


def commonest(course: Course) -> tuple[Mistake, ...]:
    """Return groups of answers that failed alike, the largest first."""
    groups: dict[tuple[str, str, str, str], list[tuple[Standing, str, ExerciseRecord]]] = {}
    for standing, notebook, exercise in _graded(course):
        if kind_of(exercise.outcome) is Kind.FAILED:
            mistake = known_mistake(exercise) or normalized(what_happened(exercise))
            key = (notebook, exercise.name, exercise.outcome, mistake)
            groups.setdefault(key, []).append((standing, what_was_said(exercise), exercise))
    found = [_mistake(group) for group in groups.values()]
    return tuple(sorted(found, key=lambda one: -len(one.learners)))


def what_was_said(exercise: ExerciseRecord) -> str:
    """Return the words that explain a mistake best: advice, broken rule, wrong value, or message."""
    return _words(exercise, advice_first=True)


def what_happened(exercise: ExerciseRecord) -> str:
    """Return what tells one mistake from another where no known mistake explains it."""
    return _words(exercise, advice_first=False)


def _words(exercise: ExerciseRecord, *, advice_first: bool) -> str:
    case = first_failed(exercise.cases)
    if case is None:
        return shown(exercise.message, _SAID)
    if case.hidden:
        return _HIDDEN_ONLY
    first, last = case.message, case.advice
    if advice_first:
        first, last = last, first
    problem = next((row[4] for row in case.rows if row[4]), "")
    said = first or (case.broken[0] if case.broken else "") or problem or last
    return shown(said or exercise.message, _SAID)


def known_mistake(exercise: ExerciseRecord) -> str:
    """Return the title of the known mistake whose sentence the first failed case shows, "" if none."""
    case = first_failed(exercise.cases)
    if case is None or case.hidden or not 0 < len(case.advice) < _MOST_ADVICE:
        return ""
    found = (title for title, said in _sentences(exercise.name) if said.fullmatch(case.advice))
    return next(found, "")


@cache
def _sentences(name: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return an exercise's known mistakes: titles, and what their sentences look like once filled in."""
    known = exercises().get(name)
    if known is None:
        return ()
    return tuple(
        (each.title, re.compile(_FACT.sub("[^\\n]{0,80}?", re.escape(each.words))))
        for each in known_mistakes(known)
    )


def normalized(said: str) -> str:
    """Take out what differs from learner to learner: numbers, addresses, lists of numbers, spaces."""
    text = _NUMBER.sub("n", _ADDRESS.sub("n", said.lower()))
    return " ".join(_LIST.sub("n", text).split())


def _graded(course: Course) -> Iterator[tuple[Standing, str, ExerciseRecord]]:
    for standing in course.standings:
        for record in standing.records:
            for exercise in record.exercises:
                if not is_fault(exercise):
                    yield standing, record.notebook, exercise


def _hardness(notebook: str, tries: list[ExerciseRecord]) -> Hardness:
    kinds = [kind_of(each.outcome) for each in tries]
    return Hardness(
        title=numbered(tries[0]),
        notebook=line(notebook),
        graded=len(tries),
        passed=kinds.count(Kind.PASSED),
        not_attempted=kinds.count(Kind.OPEN),
        median_points=median(sound(each.points) for each in tries),
        out_of=max(sound(each.out_of) for each in tries),
    )


def _mistake(group: list[tuple[Standing, str, ExerciseRecord]]) -> Mistake:
    _, said, exercise = group[0]
    known = known_mistake(exercise)
    learners = tuple({each.learner: each for each, _, _ in group}.values())
    return Mistake(
        numbered(exercise), line(known) if known else "", line(exercise.outcome, 40), said, learners
    )
