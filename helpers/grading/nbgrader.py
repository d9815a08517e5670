"""A course directory for nbgrader: the solved notebooks with the metadata that nbgrader goes by.

    solutions/NN_topic.ipynb --> OUT/source/NN_topic/NN_topic.ipynb, OUT/nbgrader_config.py

`nbgrader generate_assignment NN_topic` then makes its release directory. Each exercise is a solution
cell; a locked cell after its check gives the points, partial ones too. There is no sandbox:
nbgrader runs answers with the grader's permissions. See nbgrader's documentation, "Creating and grading
assignments".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers.checks.exercise import Exercise
from helpers.checks.registry import exercises
from helpers.course.build import BEGIN, END
from helpers.course.notebook_file import (
    Notebook,
    as_lines,
    read_notebook,
    source_of,
    write_notebook,
)
from helpers.grading.points.policy import DEFAULT, Policy

_CONFIG = f'''"""Written by `course nbgrader`: how nbgrader treats this course's notebooks."""

c = get_config()
c.CourseDirectory.course_id = "real-ranks"
c.ClearSolutions.begin_solution_delimeter = "{BEGIN.removeprefix("### ")}"
c.ClearSolutions.end_solution_delimeter = "{END.removeprefix("### ")}"
c.ClearSolutions.code_stub = {{"python": "raise NotImplementedError()"}}
c.ExecutePreprocessor.timeout = 300
'''


def write_course(solutions: Path, out: Path, policy: Policy = DEFAULT) -> list[Path]:
    """Write the directory; give the notebooks. Raise OSError where it cannot be written.

    policy: its weights are the points. nbgrader has no bonus within an assignment, so exercises beyond the
    core are worth nothing there unless the policy counts them.
    """
    written = []
    for path in sorted(solutions.glob("*.ipynb")):
        target = out / "source" / path.stem / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_notebook(target, for_nbgrader(read_notebook(path), path.stem, policy))
        written.append(target)
    (out / "nbgrader_config.py").write_text(_CONFIG, encoding="utf-8")
    return written


def for_nbgrader(notebook: Notebook, name: str, policy: Policy = DEFAULT) -> Notebook:
    """Return a solved notebook with nbgrader's metadata, without outputs."""
    wanted = [e for e in exercises().values() if e.notebook == name]
    return {**notebook, "cells": list(_cells(notebook, wanted, policy))}


def _cells(notebook: Notebook, wanted: list[Exercise], policy: Policy) -> Iterator[Notebook]:
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            yield cell
            continue
        source = source_of(cell)
        blank = {**cell, "outputs": [], "execution_count": None}
        exercise = next((e for e in wanted if f"= check({e.name})" in source), None)
        if BEGIN in source:
            yield _marked(blank, f"write-{cell['id']}", solution=True)
        else:
            yield blank
        if exercise is not None:
            yield _points(exercise, policy)


def _points(exercise: Exercise, policy: Policy) -> Notebook:
    """A cell whose value nbgrader takes for the points."""
    bonus = policy.is_bonus(exercise.name)
    weight = 0.0 if bonus else policy.weight_of(exercise.name, exercise.points)
    # nbgrader refuses more points than there are, so nothing is rounded up.
    worth = f"check({exercise.name}).points * {weight:g} / {exercise.points}"
    cell: Notebook = {
        "cell_type": "code",
        "id": f"points-{exercise.number.replace('.', '-')}",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": as_lines(worth),
    }
    return _marked(cell, f"points-{exercise.name}", points=weight)


def _marked(
    cell: Notebook, grade_id: str, *, solution: bool = False, points: float | None = None
) -> Notebook:
    mark: dict[str, Any] = {
        "schema_version": 3,
        "grade_id": grade_id,
        "solution": solution,
        "grade": points is not None,
        "locked": points is not None,
        "task": False,
    }
    if points is not None:
        mark["points"] = points
    return {**cell, "metadata": {**cell["metadata"], "nbgrader": mark}}
