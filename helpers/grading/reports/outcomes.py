"""How an outcome is told: its kind and mark, which need no colour, and what a hidden case may say.

Read by every report. An outcome that nobody knows is told as it stands, as one that failed.
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
    "here as well. You lose no points for it, and the instructor has been told."
)

_HIDDEN_SAYS = {
    Outcome.PASSED.value: "Right on cases that you had not seen.",
    Outcome.WRONG.value: (
        "Something differs on a case that you have not seen. What do your own tries leave out: "
        "a size that does not divide, another root, one rank, many ranks?"
    ),
    Outcome.FORBIDDEN.value: "A call that the task rules out was made. The task's text names it.",
    Outcome.NOT_ATTEMPTED.value: "The stub was still in its place.",
    Outcome.UNREADABLE.value: "The answer could not be read; the message above says why.",
    Outcome.CRASHED.value: (
        "An error was raised on a case that you have not seen. Which sizes, ranks or values does "
        "your code take for granted?"
    ),
    Outcome.DEADLOCKED.value: (
        "Ranks waited for each other on a case that you have not seen. Does each send meet its "
        "recv for every number of ranks?"
    ),
    Outcome.TIMED_OUT.value: (
        "It did not end in time on a case that you have not seen. Look for a loop or a wait that "
        "depends on the size of the world."
    ),
    Outcome.OUT_OF_MEMORY.value: (
        "More memory was used than an exercise may. What grows with the world's size?"
    ),
    Outcome.FLOODED.value: (
        "More was printed or sent than an exercise may. Take prints out of your loops."
    ),
    HARNESS_FAULT: FAULT_SAYS,
}
_HIDDEN_OTHERWISE = "It did not pass a case that you have not seen."


def kind_of(outcome: str) -> Kind:
    """Give what an outcome comes to."""
    return _KINDS.get(outcome, Kind.FAILED)


def hidden_says(outcome: str) -> str:
    """Give the one sentence that a hidden case's learner is told: fixed, whatever the case was."""
    return _HIDDEN_SAYS.get(outcome, _HIDDEN_OTHERWISE)


def is_fault(exercise: ExerciseRecord) -> bool:
    """Say whether grading itself failed here, so that nobody may lose points for it."""
    return kind_of(exercise.outcome) is Kind.FAULT


def first_failed(cases: Sequence[CaseRecord]) -> CaseRecord | None:
    """Give the first case that did not pass, a visible one if there is any."""
    failed = [case for case in cases if kind_of(case.outcome) is not Kind.PASSED]
    return next((case for case in failed if not case.hidden), failed[0] if failed else None)
