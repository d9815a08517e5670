"""How an outcome is shown: its kind and mark, which need no color, and what its author may read of it.

Read by every report. An unknown outcome is shown as it is, as one that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from helpers.checks.result import Outcome
from helpers.grading.record import CaseRecord, ExerciseRecord

HARNESS_FAULT = "harness fault"


class Kind(Enum):
    """What an outcome comes to; the value is also the class of its mark in a page."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    FAULT = "fault"

    @property
    def mark(self) -> str:
        return {"passed": "✓", "failed": "✗", "open": "○", "fault": "!"}[self.value]


_KINDS = {
    Outcome.PASSED.value: Kind.PASSED,
    Outcome.NOT_ATTEMPTED.value: Kind.OPEN,
    HARNESS_FAULT: Kind.FAULT,
}

FAULT_SAYS = (
    "This could not be graded here, for a reason that is not yours: the reference answer fails "
    "here as well. You lose no points for it, and the instructor can see it."
)

_HIDDEN = "failed hidden cases"
"""What is shown of an exercise whose visible cases all passed, however the hidden ones failed."""


def kind_of(outcome: str) -> Kind:
    """Return what an outcome comes to."""
    return _KINDS.get(outcome, Kind.FAILED)


def told_outcome(exercise: ExerciseRecord) -> str:
    """Return the outcome that its author may read: of hidden cases not how they failed.

    An answer could crash for one input and hang for another, and so say what a hidden case was given.
    """
    shown = [kind_of(case.outcome) for case in exercise.cases if not case.hidden]
    hidden = kind_of(exercise.outcome) is Kind.FAILED and set(shown) == {Kind.PASSED}
    return _HIDDEN if hidden else exercise.outcome


def is_fault(exercise: ExerciseRecord) -> bool:
    """Say whether grading itself failed here, so that nobody may lose points for it."""
    return kind_of(exercise.outcome) is Kind.FAULT


def first_failed(cases: Sequence[CaseRecord]) -> CaseRecord | None:
    """Return the first case that did not pass, a visible one if there is any."""
    failed = [case for case in cases if kind_of(case.outcome) is not Kind.PASSED]
    return next((case for case in failed if not case.hidden), failed[0] if failed else None)
