"""check(fn): try the learner's answer on real ranks, on the spot, by the road that graders use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helpers.exercises.answers_history import answer_from_history, input_number
from helpers.exercises.grade import grade
from helpers.exercises.model import UnknownExercise, get
from helpers.exercises.result import CheckResult, Outcome
from helpers.ranks.cells import ipython


def check(answer: Any) -> CheckResult:
    """Try an exercise's function or class on the visible cases and tell what came of it.

    The answer is rebuilt from the cells that you have run, as a grader will rebuild it from your
    notebook; so it must not use values that only another cell computed. Give the function itself or
    its name. Never raises: what went wrong is in the result's `outcome` and `cases`.
    """
    shell = ipython()
    if shell is None:
        message = "check() reads the cells of a notebook. For a file, run: course check NOTEBOOK"
        return CheckResult(str(answer), "", Outcome.UNREADABLE, message=message)
    inputs = getattr(shell.history_manager, "input_hist_raw", shell.user_ns.get("In", []))
    found = answer_from_history(answer, inputs, shell.user_ns)
    try:
        exercise = get(found.name)
    except UnknownExercise as error:
        message = f"{error}. Keep the name that the exercise gives."
        return CheckResult(found.name or str(answer), "", Outcome.UNREADABLE, message=message)
    return _recorded(grade(exercise, found, input_number))


def _recorded(result: CheckResult) -> CheckResult:
    """Keep the outcome in the learner's progress; a note, not an error, if that cannot be done."""
    from helpers.course.progress import record

    if result.outcome in {Outcome.NOT_ATTEMPTED, Outcome.UNREADABLE}:
        return result
    problem = record(result.name, result.outcome.value, result.points, result.out_of)
    return replace(result, notes=(*result.notes, problem)) if problem else result
