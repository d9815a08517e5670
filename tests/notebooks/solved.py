"""The solved notebooks, and functions that find their cells, for the tests in this folder."""

from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.checks.exercise import Exercise
from helpers.checks.registry import exercises
from helpers.course.build import BEGIN, END
from helpers.course.notebook_file import Notebook, read_notebook, source_of
from helpers.course.workspace import find_workspace

SOLVED = sorted(find_workspace().solutions.glob("*.ipynb"))
each_solved = pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def markdown_cells(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]


def is_exercise(cell: dict[str, Any]) -> bool:
    return BEGIN in source_of(cell)


def exercises_in(path: Path) -> list[Exercise]:
    """Return this notebook's exercises from the registry."""
    return [each for each in exercises().values() if each.notebook == path.stem]


def solution_texts(source: str) -> Iterator[str]:
    """Return the lines of each solution region of a cell, without its markers."""
    for match in re.finditer(rf"{BEGIN}\n(.*?)^\s*{END}", source, re.DOTALL | re.MULTILINE):
        yield match[1]


def exercise_cell(notebook: Notebook, name: str) -> int:
    """Return the index of the cell in which the notebook's author solves an exercise."""
    pattern = re.compile(rf"^(def|class) {re.escape(name)}\b", re.MULTILINE)
    (index,) = [
        index
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and is_exercise(cell) and pattern.search(source_of(cell))
    ]
    return index


def read_solved(path: Path) -> Notebook:
    """Return a copy of a solved notebook that a test may change."""
    return copy.deepcopy(read_notebook(path))


def environment(scratch: Path) -> dict[str, str]:
    """Return a child process's environment: this course, a separate progress file and no live views."""
    root = str(find_workspace().root)
    env = os.environ | {
        "REAL_RANKS_LIVE": "0",
        "REAL_RANKS_PROGRESS": str(scratch / ".progress.json"),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
    }
    env.pop("MPLBACKEND", None)  # it would prevent pictures in the page
    return env


COURSE = (sys.executable, "-m", "helpers.course.cli")
"""The `course` command, by this Python."""
