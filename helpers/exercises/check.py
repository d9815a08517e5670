"""check(fn): try the learner's answer on real ranks, on the spot, by the road that graders use."""

from __future__ import annotations

from typing import Any

from helpers.exercises.answers_history import answer_from_history
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
    name = answer if isinstance(answer, str) else getattr(answer, "__name__", "")
    try:
        exercise = get(name)
    except UnknownExercise as error:
        message = f"{error}. Keep the name that the exercise gives."
        return CheckResult(str(name), "", Outcome.UNREADABLE, message=message)
    shell = ipython()
    if shell is None:
        message = "check() reads the cells of a notebook. For a file, run: course check NOTEBOOK"
        return CheckResult(name, exercise.heading, Outcome.UNREADABLE, message=message)
    found = answer_from_history(answer, shell.user_ns.get("In", []))
    result = grade(exercise, found, lambda index: f"cell [{index}]")
    return _recorded(result)


def _recorded(result: CheckResult) -> CheckResult:
    """Keep the outcome in the learner's progress; a note, not an error, if that cannot be done."""
    from dataclasses import replace

    from helpers.course.progress import record

    if result.outcome in {Outcome.NOT_ATTEMPTED, Outcome.UNREADABLE}:
        return result
    problem = record(result.name, result.outcome.value, result.points, result.out_of)
    return replace(result, notes=(*result.notes, problem)) if problem else result
