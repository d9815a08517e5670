"""check(fn): try the learner's answer on real ranks at once, in the same way as graders do."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from helpers.answers.data import Answer, Problem
from helpers.answers.history import answer_from_history, input_number
from helpers.checks.grade import grade
from helpers.checks.headings import UnknownExercise, headings
from helpers.checks.registry import get
from helpers.checks.result import CheckResult, Outcome
from helpers.ranks.cells import ipython
from helpers.ranks.clean_settings import hide_own_files, use_fresh_settings
from helpers.ranks.display import Display
from helpers.ranks.launcher import HostsContext
from helpers.views.live import ask_to_save

_PART_HEADING = r"^## (?:Exercise \d+\.\d+: )?(.+?)(?: \(\d+ min, .*\))?$"


def check(answer: Any, *, where: HostsContext | None = None) -> CheckResult:
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
            f"where= takes the object that hosts(...) returns, not {where!r}. Write machines = "
            "hosts(...), then where=machines."
        )
        return CheckResult(found_answer.name, "", Outcome.UNREADABLE, message=message)
    if note := _note_on_later_attempt(found_answer, inputs):
        found_answer = replace(found_answer, notes=(*found_answer.notes, note))
    source = found_answer.source if isinstance(found_answer, Answer) else ""
    from helpers.course import after

    # settings of earlier cells, such as a default dtype, must not change what is drawn, because a grader
    # does not have them
    with use_fresh_settings(), hide_own_files():
        servers = where.servers() if where is not None else None
        result = grade(
            exercise,
            found_answer,
            input_number,
            connection=servers,
            record_values=Display().records_values,
        )
    after.remember_result(result.name, passed=result.passed)
    next_step, link = _next_part(result.name)
    return replace(_store_outcome(result), source=source, next_step=next_step, link=link)


def _next_part(name: str) -> tuple[str, str]:
    """Return what comes after an exercise on the path of the home page, and JupyterLab's link to it.

    That is the next part of the notebook that is on the path, whether it is an exercise or not. If the path
    has the whole notebook, or if the exercise is not on the path, the parts up to the last exercise count.
    After the last part comes the next notebook or the cell with the next stops.
    """
    from helpers.course.home import home, title_of
    from helpers.course.workspace import match_cell_ids, matching_cells

    heading, chosen_path = headings()[name], home().way
    notebook, path = heading.notebook, chosen_path.path if chosen_path else None
    stop = next((stop for stop in path.stops if stop.notebook == notebook), None) if path else None
    is_on_path = stop is not None and name in [exercise.name for exercise in stop.exercises]
    exercises_in_order = [
        exercise for exercise in headings().values() if exercise.notebook == notebook
    ]
    if stop is not None and is_on_path:
        exercises_in_order = list(stop.exercises)
    skipped_titles = {
        exercise.title
        for exercise in headings().values()
        if exercise.notebook == notebook and exercise not in exercises_in_order
    }
    exercises = {exercise.title: exercise for exercise in exercises_in_order}
    parts = [
        (title, cell)
        for title, cell in match_cell_ids(notebook, _PART_HEADING)
        if title not in skipped_titles
    ]
    places = {title: place for place, (title, _) in enumerate(parts)}
    # A copy of the course may lack the notebook. Then nothing is known about its parts.
    parts_below = list(enumerate(parts))[places.get(heading.title, len(parts)) + 1 :]
    on_path = stop.parts if stop is not None else ()
    candidates = [(place, part) for place, part in parts_below if part[0] in on_path]
    if not candidates and not (is_on_path and on_path):
        last_place = max((places.get(title, -1) for title in exercises), default=-1)
        candidates = [(place, part) for place, part in parts_below if place <= last_place]
    for place, (title, cell) in candidates:
        # A section may have the title of the exercise below it.
        next_exercise = exercises.get(title) if place == places[title] else None
        description = (
            f"Exercise {next_exercise.number}, {next_exercise.title}" if next_exercise else title
        )
        return description, f"{notebook}.ipynb#cell-id={cell}"
    next_stop = path.after(notebook) if path and is_on_path else None
    if next_stop is not None:
        return title_of(next_stop.notebook), next_stop.link
    (cell,) = matching_cells(notebook, r"^## (Next)$").values() or ("",)
    end = f"the end of “{path.title}”" if path and is_on_path else "the next notebook of your path"
    return end, f"{notebook}.ipynb#cell-id={cell}" if cell else ""


def _note_on_later_attempt(answer: Answer | Problem, inputs: Sequence[str]) -> str:
    """Return a note if the last version of the answer never ran because its cell is not valid Python."""
    if isinstance(answer, Problem) or not answer.origins:
        return ""
    checked = max(origin.cell for origin in answer.origins)
    # a cell that does not compile defines nothing, so the kernel still has the version before it
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


def _store_outcome(result: CheckResult) -> CheckResult:
    """Store the outcome in the learner's progress; add a note, not an error, if that fails."""
    # imported here, in a learner's kernel only, because checks must not depend on the course or the room
    from helpers.course.progress import record_score
    from helpers.room.outbox import record_check

    if result.outcome in {Outcome.NOT_ATTEMPTED, Outcome.UNREADABLE}:
        return result
    record_check(result.name, result.outcome.value, result.mistake)
    if result.passed:
        ask_to_save()
    problem = record_score(result.name, result.outcome.value, result.points, result.out_of)
    return replace(result, notes=(*result.notes, problem)) if problem else result
