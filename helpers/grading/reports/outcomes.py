"""Describe outcomes for reports: their kind, their mark (readable without color), and text for learners.

Every report uses these functions. An unknown outcome is shown unchanged, as a failure. Learners see only the
number of passed hidden cases. The failed cases and their failures are not shown, because an answer could
choose its way of failing and so reveal its inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from helpers.check_result import CaseRecord, Outcome, Row
from helpers.grading.points.counted import override_of
from helpers.grading.record import ExerciseRecord
from helpers.grading.reports.text import clip_text, line, numbered_title, points_text
from helpers.views.failed_case import case_lines
from helpers.views.plain import plural

MAX_CASES = 60


class Kind(StrEnum):
    """The kind of an outcome. The value is also the class of its mark in a page."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    FAULT = "fault"

    @property
    def mark(self) -> str:
        return {"passed": "✓", "failed": "✗", "open": "○", "fault": "!"}[self]


_KIND_BY_OUTCOME = {
    Outcome.PASSED.value: Kind.PASSED,
    Outcome.NOT_ATTEMPTED.value: Kind.OPEN,
    Outcome.FAULT.value: Kind.FAULT,
}

FAULT_TEXT = (
    "This exercise could not be graded here. That is not your fault: the reference answer fails "
    "here as well. You lose no points for it, and the instructor can see the failure."
)

# Shown if all visible cases of an exercise passed, for any failure of a hidden case.
_HIDDEN_FAILURE = "failed hidden cases"
_HIDDEN_HINT = (
    "Which cases have you not tried: a size that does not divide evenly, a different root, one "
    "rank, many ranks?"
)


def kind_of(outcome: str) -> Kind:
    """Return the kind of an outcome."""
    return _KIND_BY_OUTCOME.get(outcome, Kind.FAILED)


def outcome_of(exercise: ExerciseRecord) -> str:
    return exercise.outcome


def shown_outcome(exercise: ExerciseRecord) -> str:
    """Return the outcome that the learner may read, which does not reveal how hidden cases failed.

    An answer could crash for one input and hang for another, and so reveal a hidden case's input.
    """
    shown = {kind_of(case.outcome) for case in exercise.cases if not case.hidden}
    hidden = kind_of(exercise.outcome) is Kind.FAILED and shown == {Kind.PASSED}
    return _HIDDEN_FAILURE if hidden else exercise.outcome


def summary_of(
    exercises: Sequence[ExerciseRecord], outcome: Callable[[ExerciseRecord], str] = outcome_of
) -> str:
    """Return a line about a learner's exercises: `7 of 10 exercises passed, ...`.

    outcome: function that returns the outcome to show; `shown_outcome` for the learner.
    """
    counts = Counter(map(outcome, exercises))
    if not counts:
        return "nothing was graded"
    passed = counts.pop(Outcome.PASSED.value, 0)
    rest = [f"{count} {line(name, 40)}" for name, count in counts.items()]
    return ", ".join([f"{passed} of {plural(len(exercises), 'exercise')} passed", *rest])


def is_fault(exercise: ExerciseRecord) -> bool:
    """Return whether grading failed here and no person has decided yet. If so, no points may be lost."""
    return kind_of(exercise.outcome) is Kind.FAULT and override_of(exercise) is None


def override_text(exercise: ExerciseRecord) -> str:
    """Return text on the points set by a person and the reason, or "" if no person has set points."""
    override = override_of(exercise)
    if override is None:
        return ""
    who = ", ".join(line(each) for each in (override.by, override.when) if each)
    said = f"{numbered_title(exercise)}: {points_text(override.points)} set by hand"
    return f"{said}{f' ({who})' if who else ''}: {clip_text(override.reason, 400)}"


def visible_cases(exercise: ExerciseRecord) -> list[CaseRecord]:
    """Return the visible cases, which are the same as in the learner's check."""
    return [case for case in exercise.cases[:MAX_CASES] if not case.hidden]


def failed_cases(cases: Sequence[CaseRecord]) -> list[CaseRecord]:
    """Return the cases that did not pass."""
    return [case for case in cases if kind_of(case.outcome) is not Kind.PASSED]


def hidden_text(exercise: ExerciseRecord) -> str:
    """Return text on the number of passed hidden cases, or "" if none ran or if visible cases failed."""
    hidden = [case for case in exercise.cases if case.hidden]
    if not hidden or failed_cases(visible_cases(exercise)):
        return ""
    passed = len(hidden) - len(failed_cases(hidden))
    told = f"{passed} of {len(hidden)} hidden cases passed."
    return told if passed == len(hidden) else f"{told} {_HIDDEN_HINT}"


def explaining_cases(exercise: ExerciseRecord) -> Iterator[CaseRecord]:
    """Yield the failed visible cases that have an explanation, one case for each explanation."""
    seen: set[tuple[str, tuple[str, ...], str]] = set()
    for case in failed_cases(visible_cases(exercise)):
        said = (case.message, case.broken, case.advice)
        if said not in seen and (any(said) or (not seen and any(row.problem for row in case.rows))):
            yield case
        seen.add(said)


# --- as plain text, for JUnit, autograders and annotations ------------------------------------------------


def exercise_text(exercise: ExerciseRecord) -> str:
    """Return an exercise's message, cases and first explanation as several lines of text."""
    if is_fault(exercise):
        return FAULT_TEXT
    lines = [clip_text(exercise.message)] if exercise.message else []
    lines += [f"{line(case.outcome, 40)}: {line(case.label)}" for case in visible_cases(exercise)]
    lines += filter(None, [hidden_text(exercise)])
    for case in failed_cases(visible_cases(exercise))[:1]:
        lines += ["", *case_lines(_clean_case(case))]
    lines += [f"Note: {clip_text(note, 400)}" for note in exercise.notes[:20]]
    return "\n".join(lines)


def _clean_case(case: CaseRecord) -> CaseRecord:
    """Return a case whose texts are harmless and limited in length."""
    rows = [
        Row(
            row.rank,
            *(clip_text(text, 200) for text in (row.given, row.expected, row.got, row.problem)),
        )
        for row in case.rows
    ]
    return replace(
        case,
        label=line(case.label),
        rows=tuple(rows),
        broken=tuple(clip_text(rule, 400) for rule in case.broken),
        message=clip_text(case.message),
        advice=clip_text(case.advice),
    )
