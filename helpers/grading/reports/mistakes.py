"""Find a class's hard exercises, and mistakes that many learners share.

`class_page` shows both. Answers are grouped by the known mistake that explains them. Without a known mistake,
they are grouped by the first failed case: its waits, its broken rule or its wrong value. Mistakes are not
merged just because they share the same advice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

from helpers.check_result import CaseRecord
from helpers.checks.limits import RESOURCE_OUTCOMES
from helpers.checks.mistakes import known_mistakes
from helpers.checks.registry import exercises
from helpers.grading.record import ExerciseRecord
from helpers.grading.reports.outcomes import Kind, failed_cases, is_fault, kind_of
from helpers.grading.reports.standing import Course, Standing
from helpers.grading.reports.text import clip_text, finite_or_zero, line, numbered_title

_MAX_WORDS_CHARS = 400
_LIMITS = {outcome.value for outcome in RESOURCE_OUTCOMES}
_MAX_ADVICE_CHARS = 1000
_HIDDEN_ONLY = "All visible cases pass; a hidden one does not."
_ADDRESS_PATTERN = re.compile(r"0x[0-9a-f]+")
_NUMBER_PATTERN = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_PLACEHOLDER_PATTERN = re.compile(r"\\{[^{}]*\\}")
_LIST_PATTERN = re.compile(r"\[[n,. ]*\]|\([n,. ]*\)")


@dataclass(frozen=True)
class PassRate:
    """The pass rate of an exercise among learners whose notebook could be graded."""

    title: str
    graded: int
    passed: int
    not_attempted: int
    median_points: float
    out_of: float

    @property
    def share_passed(self) -> float:
        return self.passed / self.graded


@dataclass(frozen=True)
class Mistake:
    """A failure shared by several answers to an exercise.

    known: the title of the known mistake, or "". said: the check's text for the first learner of the group.
    """

    title: str
    known: str
    outcome: str
    said: str
    learners: tuple[Standing, ...]


def pass_rates(course: Course) -> list[PassRate]:
    """Return every exercise, sorted by the share of learners who passed, smallest first."""
    tries = defaultdict[tuple[str, str], list[ExerciseRecord]](list)
    for _, notebook, exercise in _graded_exercises(course):
        tries[notebook, exercise.name].append(exercise)
    found = [
        PassRate(
            title=numbered_title(each[0]),
            graded=len(each),
            passed=sum(kind_of(x.outcome) is Kind.PASSED for x in each),
            not_attempted=sum(kind_of(x.outcome) is Kind.OPEN for x in each),
            median_points=median(finite_or_zero(x.points) for x in each),
            out_of=max(finite_or_zero(x.out_of) for x in each),
        )
        for each in tries.values()
    ]
    return sorted(found, key=lambda one: (one.share_passed, one.median_points / (one.out_of or 1)))


def frequent_mistakes(course: Course) -> list[Mistake]:
    """Return groups of answers that failed alike, the largest first."""
    groups = defaultdict[tuple[str, ...], list[tuple[Standing, ExerciseRecord]]](list)
    for standing, notebook, exercise in _graded_exercises(course):
        # an exceeded limit does not reveal its cause
        if kind_of(exercise.outcome) is Kind.FAILED and exercise.outcome not in _LIMITS:
            mistake = known_mistake(exercise) or normalize_words(distinguishing_words(exercise))
            key = (notebook, exercise.name, exercise.outcome, mistake)
            groups[key].append((standing, exercise))
    found = []
    for group in groups.values():
        first = group[0][1]
        known = known_mistake(first)
        learners = tuple({standing.learner: standing for standing, _ in group}.values())
        outcome, said = line(first.outcome, 40), best_explanation(first)
        found.append(Mistake(numbered_title(first), known and line(known), outcome, said, learners))
    return sorted(found, key=lambda one: -len(one.learners))


def best_explanation(exercise: ExerciseRecord) -> str:
    """Return the words that explain a mistake best: advice, broken rule, wrong value, or message."""
    return _words(exercise, "advice", "message")


def distinguishing_words(exercise: ExerciseRecord) -> str:
    """Return words by which to distinguish failures that are not known mistakes."""
    return _words(exercise, "message", "advice")


def _words(exercise: ExerciseRecord, first: str, last: str) -> str:
    case = _first_failed(exercise)
    if case is None:
        return clip_text(exercise.message, _MAX_WORDS_CHARS)
    if case.hidden:
        return _HIDDEN_ONLY
    problems = [row.problem for row in case.rows if row.problem]
    said = [getattr(case, first), *case.broken[:1], *problems[:1], getattr(case, last)]
    return clip_text(next(filter(None, said), exercise.message), _MAX_WORDS_CHARS)


def _first_failed(exercise: ExerciseRecord) -> CaseRecord | None:
    """Return the first case that did not pass, a visible one if possible."""
    return min(failed_cases(exercise.cases), key=lambda case: case.hidden, default=None)


def known_mistake(exercise: ExerciseRecord) -> str:
    """Return the title of the known mistake whose sentence is shown in the first failed case, or ""."""
    case = _first_failed(exercise)
    if case is None or case.hidden or not 0 < len(case.advice) < _MAX_ADVICE_CHARS:
        return ""
    found = (title for title, said in _sentences(exercise.name) if said.fullmatch(case.advice))
    return next(found, "")


@cache
def _sentences(name: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return an exercise's known mistakes: (title, pattern of the filled-in sentence)."""
    known = exercises().get(name)
    return tuple(
        (each.title, re.compile(_PLACEHOLDER_PATTERN.sub("[^\\n]{0,80}?", re.escape(each.words))))
        for each in (known_mistakes(known) if known else ())
    )


def normalize_words(said: str) -> str:
    """Remove the parts that differ between learners: numbers, addresses, lists of numbers, spaces."""
    text = _NUMBER_PATTERN.sub("n", _ADDRESS_PATTERN.sub("n", said.lower()))
    return " ".join(_LIST_PATTERN.sub("n", text).split())


def _graded_exercises(course: Course) -> Iterator[tuple[Standing, str, ExerciseRecord]]:
    for standing in course.standings:
        for record in standing.records:
            for exercise in record.exercises:
                if not is_fault(exercise):
                    yield standing, record.notebook, exercise
