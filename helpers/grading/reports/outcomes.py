"""How an outcome is shown: its kind and mark, which need no color, and what its author may read of it.

Read by every report. An unknown outcome is shown as it is, as one that failed. Of hidden cases a learner
reads how many passed, and nothing else. Which of them failed, and how, is not shown: an answer that fails as
it likes could say so what a hidden case was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from helpers.checks.result import Outcome
from helpers.grading.points.counted import override_of
from helpers.grading.record import CaseRecord, ExerciseRecord
from helpers.grading.reports.text import line, number, numbered, shown

MOST_CASES = 60


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
    Outcome.FAULT.value: Kind.FAULT,
}

FAULT_SAYS = (
    "This could not be graded here, for a reason that is not yours: the reference answer fails "
    "here as well. You lose no points for it, and the instructor can see it."
)

# What is shown of an exercise whose visible cases all passed, however the hidden ones failed.
_HIDDEN = "failed hidden cases"
_OTHERS = "What do your own tries leave out: a size that does not divide, another root, one rank, many ranks?"


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
    """Whether grading itself failed here, so that nobody may lose points for it, nor has a person decided."""
    return kind_of(exercise.outcome) is Kind.FAULT and override_of(exercise) is None


def override_text(exercise: ExerciseRecord) -> str:
    """Say which points a person has given, and why; "" where nobody has."""
    override = override_of(exercise)
    if override is None:
        return ""
    who = ", ".join(line(each) for each in (override.by, override.when) if each)
    said = f"{numbered(exercise)}: {number(override.points)} points set by hand"
    return f"{said}{f' ({who})' if who else ''}: {shown(override.reason, 400)}"


def first_failed(cases: Sequence[CaseRecord]) -> CaseRecord | None:
    """Return the first case that did not pass, a visible one if there is any."""
    failed = [case for case in cases if kind_of(case.outcome) is not Kind.PASSED]
    return next((case for case in failed if not case.hidden), failed[0] if failed else None)


# --- as plain text, for JUnit, Gradescope and GitHub ------------------------------------------------


def exercise_text(exercise: ExerciseRecord) -> str:
    """Return message, cases and the first look of an exercise as text of several lines."""
    if is_fault(exercise):
        return FAULT_SAYS
    lines = [shown(exercise.message)] if exercise.message else []
    for case in visible(exercise.cases):
        lines.append(f"{line(case.outcome, 40)}: {line(case.label)}")
    lines += filter(None, [hidden_text(exercise)])
    worst = first_visible(exercise)
    lines += _worst(worst) if worst else []
    lines += [f"Note: {shown(note, 400)}" for note in exercise.notes[:20]]
    return "\n".join(lines)


def visible(cases: Sequence[CaseRecord]) -> Iterator[CaseRecord]:
    """Return the cases that the learner's own check has as well."""
    return (case for case in cases[:MOST_CASES] if not case.hidden)


def hidden_text(exercise: ExerciseRecord) -> str:
    """Tell how many hidden cases passed; "" where none was tried, or visible ones come first."""
    hidden = [kind_of(case.outcome) is Kind.PASSED for case in exercise.cases if case.hidden]
    visible_failed = any(
        kind_of(case.outcome) is not Kind.PASSED for case in visible(exercise.cases)
    )
    if not hidden or visible_failed:
        return ""
    told = f"{sum(hidden)} of {len(hidden)} hidden cases passed."
    return told if all(hidden) else f"{told} {_OTHERS}"


def first_visible(exercise: ExerciseRecord) -> CaseRecord | None:
    """Return the first visible case that did not pass."""
    cases = exercise.cases[:MOST_CASES]
    return next((c for c in cases if not c.hidden and kind_of(c.outcome) is not Kind.PASSED), None)


def _worst(case: CaseRecord) -> list[str]:
    lines = ["", f"In the case {line(case.label)}:"]
    for rank, given, expected, got, problem in [row for row in case.rows if row[4]][:8]:
        parts = (("given", given), ("expected", expected), ("got", got))
        said = ", ".join(f"{name} {shown(text, 200)}" for name, text in parts if text)
        lines.append(f"    rank {rank}: {said}{': ' if said else ''}{shown(problem, 200)}")
    lines += [shown(case.message)] if case.message else []
    lines += [f"How the ranks communicated: {shown(rule, 400)}" for rule in case.broken[:10]]
    return lines + ([f"Start here: {shown(case.advice)}"] if case.advice else [])
