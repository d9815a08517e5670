"""What became of an exercise in a few plain lines, for formats that take a text: JUnit, Gradescope, GitHub.

The learner may read it: of hidden cases it tells how many passed, and nothing else. Which of them failed, and
how, is not told: an answer that fails as it likes could say so what a hidden case was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from helpers.grading.record import CaseRecord, ExerciseRecord
from helpers.grading.reports.outcomes import FAULT_SAYS, Kind, is_fault, kind_of
from helpers.grading.reports.text import line, shown

MOST_CASES = 60
_OTHERS = "What do your own tries leave out: a size that does not divide, another root, one rank, many ranks?"


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
    """Tell how many hidden cases passed; "" where none was tried."""
    hidden = [kind_of(case.outcome) is Kind.PASSED for case in exercise.cases if case.hidden]
    if not hidden:
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
    lines += [f"How the ranks talked: {shown(rule, 400)}" for rule in case.broken[:10]]
    return lines + ([f"Start here: {shown(case.advice)}"] if case.advice else [])
