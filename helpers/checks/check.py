"""check(fn): try the learner's answer on real ranks at once, in the same way as graders do."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from helpers.answers.data import Answer, Problem
from helpers.answers.history import answer_from_history, input_number
from helpers.check_result import CheckResult, Outcome
from helpers.checks.check_answer import grade
from helpers.checks.headings import UnknownExercise
from helpers.checks.listeners import tell_listeners
from helpers.checks.registry import get
from helpers.ranks.cells import ipython
from helpers.ranks.clean_settings import hide_own_files, use_fresh_settings
from helpers.ranks.display import Display
from helpers.ranks.launcher import HostsContext, show_check
from helpers.views.live import ask_to_save


def check(answer: Any, *, where: HostsContext | None = None) -> CheckResult:
    """Try an exercise's function or class on the visible cases and return the result.

    The answer is rebuilt from the cells that you have run, as a grader will rebuild it from your notebook; so
    it must not use values computed in another cell. Pass the function itself or its name. Never raises:
    failures are in the result's `outcome` and `cases`. `where`: the machines on which the cases run, as
    returned by `hosts(...)`; by default, this machine.
    """
    shell = ipython()
    if shell is None:
        message = "check() reads the cells of a notebook. For a file, run: course check NOTEBOOK"
        return CheckResult(str(answer), "", Outcome.UNREADABLE, message=message)
    # the source as typed, including magics; `In` has IPython's translation, but exists even without a history
    inputs = getattr(shell.history_manager, "input_hist_raw", shell.user_ns.get("In", []))
    found_answer = answer_from_history(answer, inputs, shell.user_ns)
    try:
        exercise = get(found_answer.name)
    except UnknownExercise as error:
        message = f"check() takes the function of an exercise: {error}"
        return CheckResult(
            found_answer.name or str(answer), "", Outcome.UNREADABLE, message=message
        )
    if where is not None and not isinstance(where, HostsContext):
        message = (
            f"where= needs the object returned by hosts(...), not {where!r}. Write machines = "
            "hosts(...), then where=machines."
        )
        return CheckResult(found_answer.name, "", Outcome.UNREADABLE, message=message)
    if note := _note_on_later_attempt(found_answer, inputs):
        found_answer = replace(found_answer, notes=(*found_answer.notes, note))
    source = found_answer.source if isinstance(found_answer, Answer) else ""
    # settings of earlier cells, such as a default dtype, must not change the drawn cases, because a grader
    # does not have these settings
    with use_fresh_settings(), hide_own_files(), show_check(found_answer.name):
        servers = where.servers() if where is not None else None
        result = grade(
            exercise,
            found_answer,
            input_number,
            connection=servers,
            record_values=Display().records_values,
        )
    if result.passed:
        ask_to_save()
    return tell_listeners(replace(result, source=source))


def _note_on_later_attempt(answer: Answer | Problem, inputs: Sequence[str]) -> str:
    """Return a note if the last version of the answer never ran because its cell is not valid Python."""
    if isinstance(answer, Problem) or not answer.origins:
        return ""
    checked = max(origin.cell for origin in answer.origins)
    # a cell that does not compile defines nothing, so the kernel still has the previous version
    definition = re.compile(rf"^(async def|def|class) {re.escape(answer.name)}\b", re.MULTILINE)
    for index in range(len(inputs) - 1, checked, -1):
        if definition.search(inputs[index]) and not _is_python(inputs[index]):
            return (
                f"{input_number(index)} also defines {answer.name}, but is not valid Python and did not "
                f"run: the version in {input_number(checked)} was checked"
            )
    return ""


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
