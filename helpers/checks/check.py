"""check(fn): try the learner's answer on real ranks at once, in the same way as graders do."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile, islice
from typing import Any

from helpers.answers.data import Answer, Problem
from helpers.answers.history import answer_from_history, input_number
from helpers.checks.grade import grade
from helpers.checks.headings import UnknownExercise, headings
from helpers.checks.registry import get
from helpers.checks.result import CheckResult, Outcome
from helpers.ranks.cells import ipython
from helpers.ranks.clean_settings import as_in_a_new_process, without_own_files
from helpers.ranks.display import Display
from helpers.ranks.launcher import Place

_PART = r"^## (?:Exercise \d+\.\d+: )?(.+?)(?: \(\d+ min, .*\))?$"


def check(answer: Any, *, where: Place | None = None) -> CheckResult:
    """Try an exercise's function or class on the visible cases and return the result.

    The answer is rebuilt from the cells that you have run, as a grader will rebuild it from your
    notebook; so it must not use values that only another cell computed. Give the function itself or
    its name. Never raises: failures are in the result's `outcome` and `cases`. `where`: machines, as
    `hosts(...)` gives them, on which the cases run; by default they run on this one.
    """
    shell = ipython()
    if shell is None:
        message = "check() reads the cells of a notebook. For a file, run: course check NOTEBOOK"
        return CheckResult(str(answer), "", Outcome.UNREADABLE, message=message)
    # the source as typed, with magics: `In` has IPython's translation, but exists even without a history
    inputs = getattr(shell.history_manager, "input_hist_raw", shell.user_ns.get("In", []))
    found = answer_from_history(answer, inputs, shell.user_ns)
    try:
        exercise = get(found.name)
    except UnknownExercise as error:
        message = f"check() takes the function of an exercise: {error}"
        return CheckResult(found.name or str(answer), "", Outcome.UNREADABLE, message=message)
    if where is not None and not isinstance(where, Place):
        message = (
            f"where= takes the object that hosts(...) returns, not {where!r}. Write machines = "
            "hosts(...), then where=machines."
        )
        return CheckResult(found.name, "", Outcome.UNREADABLE, message=message)
    if note := _later_attempt(found, inputs):
        found = replace(found, notes=(*found.notes, note))
    source = found.source if isinstance(found, Answer) else ""
    from helpers.course import after

    # settings of earlier cells, such as a default dtype, must not change what is drawn, because a grader
    # does not have them
    with as_in_a_new_process(), without_own_files():
        servers = where.servers() if where is not None else None
        result = grade(exercise, found, input_number, connection=servers, watched=Display().watched)
    after.remember(result.name, passed=result.passed)
    following, link = _following(result.name)
    return replace(_recorded(result), source=source, following=following, link=link)


def _following(name: str) -> tuple[str, str]:
    """Return what comes after an exercise on the path of the home page, and JupyterLab's link to it.

    That is the next exercise of the path or, if the exercise is not on the path, of its notebook. After
    the last exercise of a notebook, the path's other parts of the notebook come first, and then the next
    notebook or the cell with the next stops.
    """
    from helpers.course.home import home, title_of
    from helpers.course.workspace import cells_with

    notebook, way = headings()[name].notebook, home().way
    stops = way.path.stops if way else ()
    order = [each for stop in stops for each in stop.exercises]
    end = "the end of your path"
    if name not in [each.name for each in order]:
        order = [each for each in headings().values() if each.notebook == notebook]
        end = "the next notebook of your path"
    later = order[[each.name for each in order].index(name) + 1 :]
    if not later or later[0].notebook != notebook:
        cells = cells_with(notebook, _PART)
        below = dropwhile(lambda title: title != headings()[name].title, cells)
        named = {part for stop in stops if stop.notebook == notebook for part in stop.parts}
        part = next((title for title in islice(below, 1, None) if title in named), "")
        if part:
            return part, f"{notebook}.ipynb#cell-id={cells[part]}"
    if not later:
        cell = cells_with(notebook, r'^next_steps\("(\d\d)"\)').get(notebook[:2])
        return end, f"{notebook}.ipynb#cell-id={cell}" if cell else ""
    if later[0].notebook != notebook:
        return title_of(later[0].notebook), f"{later[0].notebook}.ipynb"
    cell = cells_with(notebook, r"^#+ Exercise (\d+\.\d+):").get(later[0].number)
    words = f"Exercise {later[0].number}, {later[0].title}"
    return words, f"{notebook}.ipynb#cell-id={cell}" if cell else ""


def _later_attempt(found: Answer | Problem, inputs: Sequence[str]) -> str:
    """Return a note if the last version of the answer never ran because its cell is not valid Python."""
    if isinstance(found, Problem) or not found.origins:
        return ""
    checked = max(origin.cell for origin in found.origins)
    # a cell that does not compile defines nothing, so the kernel still has the version before it
    starts = re.compile(rf"^(async def|def|class) {re.escape(found.name)}\b", re.MULTILINE)
    for index in range(len(inputs) - 1, checked, -1):
        if starts.search(inputs[index]) and not _is_python(inputs[index]):
            return (
                f"{input_number(index)} also defines {found.name}, but is not valid Python and did not "
                f"run: the version in {input_number(checked)} was checked"
            )
    return ""


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _recorded(result: CheckResult) -> CheckResult:
    """Store the outcome in the learner's progress; add a note, not an error, if that fails."""
    # imported here, in a learner's kernel only, because checks must not depend on the course or the room
    from helpers.course.progress import record
    from helpers.room.outbox import note

    if result.outcome in {Outcome.NOT_ATTEMPTED, Outcome.UNREADABLE}:
        return result
    note(result.name, result.outcome.value, result.mistake)
    problem = record(result.name, result.outcome.value, result.points, result.out_of)
    return replace(result, notes=(*result.notes, problem)) if problem else result
