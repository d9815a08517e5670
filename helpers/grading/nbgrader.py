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

_CONFIG = f'''"""Written by `course nbgrader`: how nbgrader treats this course's notebooks."""

c = get_config()
c.CourseDirectory.course_id = "real-ranks"
c.ClearSolutions.begin_solution_delimeter = "{BEGIN.removeprefix("### ")}"
c.ClearSolutions.end_solution_delimeter = "{END.removeprefix("### ")}"
c.ClearSolutions.code_stub = {{"python": "raise NotImplementedError()"}}
c.ExecutePreprocessor.timeout = 300
'''


def write_course(solutions: Path, out: Path) -> list[Path]:
    """Write the directory; give the notebooks. Raise OSError where it cannot be written."""
    written = []
    for path in sorted(solutions.glob("*.ipynb")):
        target = out / "source" / path.stem / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_notebook(target, for_nbgrader(read_notebook(path), path.stem))
        written.append(target)
    (out / "nbgrader_config.py").write_text(_CONFIG)
    return written


def for_nbgrader(notebook: Notebook, name: str) -> Notebook:
    """Return a solved notebook with nbgrader's metadata, without outputs."""
    wanted = [e for e in exercises().values() if e.notebook == name]
    return {**notebook, "cells": list(_cells(notebook, wanted))}


def _cells(notebook: Notebook, wanted: list[Exercise]) -> Iterator[Notebook]:
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
            yield _points(exercise)


def _points(exercise: Exercise) -> Notebook:
    """A cell whose value nbgrader takes for the points."""
    cell: Notebook = {
        "cell_type": "code",
        "id": f"points-{exercise.number.replace('.', '-')}",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": as_lines(f"check({exercise.name}).points"),
    }
    return _marked(cell, f"points-{exercise.name}", points=exercise.points)


def _marked(
    cell: Notebook, grade_id: str, *, solution: bool = False, points: int | None = None
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
