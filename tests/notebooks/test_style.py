"""Test the formal rules for this course's notebooks that a machine can check."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from helpers.answers.names import names_of
from helpers.checks.exercise import Exercise
from helpers.checks.registry import exercises
from helpers.course.build import KEEP_OUTPUT
from helpers.course.notebook_file import read_notebook, source_of
from helpers.course.quizzes import QUIZ_DIR, load_quizzes
from tests.notebooks.solved import (
    SOLVED,
    code_cells,
    each_solved,
    exercise_cell,
    is_exercise,
    markdown_cells,
)

MAX_LINES = 12
"""Maximum number of code lines in one cell, without blank lines, which the formatter adds."""

MAX_WORDS = 110
"""Maximum number of words of running text in one markdown cell. The aim is 20 to 60."""

HEADING = re.compile(r"^#+ (Exercise .*)$", re.MULTILINE)
each_exercise = pytest.mark.parametrize("exercise", exercises().values(), ids=lambda e: e.name)


def solved(exercise: Exercise) -> Path:
    (path,) = [path for path in SOLVED if path.stem == exercise.notebook]
    return path


def words_of(markdown: str) -> list[str]:
    """Return the words of running text: no headings, diagrams, tables, lists or formulas."""
    text = re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    left_out = re.compile(r"^\s*(#|\||[-*+] |\d+\. |</?details>)|^  +\S")
    return [w for line in text.splitlines() if not left_out.match(line) for w in line.split()]


@each_solved
def test_first_cell_imports_only_permitted_modules(path: Path) -> None:
    first = code_cells(read_notebook(path))[0]
    for node in ast.parse(source_of(first)).body:
        if KEEP_OUTPUT in first["metadata"].get("tags", ()) and not isinstance(
            node, ast.Import | ast.ImportFrom
        ):
            continue  # the course's opening run
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            # If torch's DDP is named here, the rank server imports it while the learner reads.
            known = module in {"helpers", "torch.nn.parallel"} or module.startswith("helpers.")
            assert known, ast.unparse(node)
            assert "*" not in [name.name for name in node.names], ast.unparse(node)
        else:
            allowed = {"import torch", "import torch.distributed as dist"}
            assert ast.unparse(node) in allowed, ast.unparse(node)


@each_solved
def test_code_cells_are_short(path: Path) -> None:
    for cell in code_cells(read_notebook(path))[1:]:  # the first has only imports, one per line
        lines = [x for x in source_of(cell).splitlines() if x.strip() and not x.startswith("%%")]
        assert is_exercise(cell) or len(lines) <= MAX_LINES, f"{cell['id']}: {len(lines)} lines"


@each_solved
def test_markdown_cells_are_short(path: Path) -> None:
    for cell in markdown_cells(read_notebook(path)):
        count = len(words_of(source_of(cell)))
        assert count <= MAX_WORDS, f"{cell['id']}: {count} words"


@each_solved
def test_exercise_headings_match_registry_order(path: Path) -> None:
    cells = markdown_cells(read_notebook(path))
    written = [heading for cell in cells for heading in HEADING.findall(source_of(cell))]
    assert written == [e.heading for e in exercises().values() if e.notebook == path.stem]


@each_exercise
def test_exercise_has_task_stub_and_check(exercise: Exercise) -> None:
    cells = read_notebook(solved(exercise))["cells"]
    (task,) = [
        index
        for index, cell in enumerate(cells)
        if cell["cell_type"] == "markdown" and exercise.heading in HEADING.findall(source_of(cell))
    ]
    assert "**Target:**" in source_of(cells[task]), "say what the check will measure"
    stub = exercise_cell({"cells": cells}, exercise.name)
    assert task < stub <= task + 3, "the stub is below its task"
    (node,) = [n for n in ast.parse(source_of(cells[stub])).body if _name(n) == exercise.name]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node)
    if isinstance(node, ast.FunctionDef):
        assert node.returns, "say what it returns"
        assert all(argument.annotation for argument in node.args.args), "say what it is given"
    assert source_of(cells[stub + 1]).startswith(f"result = check({exercise.name})")


def _name(node: ast.stmt) -> str:
    return getattr(node, "name", "")


@each_solved
def test_notebook_asks_each_quiz_once(path: Path) -> None:
    text = "\n".join(source_of(cell) for cell in code_cells(read_notebook(path)))
    asked = re.findall(r"\bpredict\(\s*[\"']([^\"']+)[\"']", text)
    assert asked and len(asked) == text.count("predict(") and len(set(asked)) == len(asked)
    assert set(asked) <= set(load_quizzes())
    here = QUIZ_DIR / f"{path.stem}.toml"
    written = re.findall(r'^id = "([^"]+)"', here.read_text(), re.MULTILINE)
    assert set(asked) == set(written), f"{here.name} and the notebook"


@each_solved
def test_requested_hints_exist(path: Path) -> None:
    text = "\n".join(source_of(cell) for cell in code_cells(read_notebook(path)))
    assert set(re.findall(r"\bhint\([\"']([^\"']+)[\"']", text)) <= set(exercises())


@each_solved
def test_later_cells_keep_exercise_names_unchanged(path: Path) -> None:
    """Grading uses the last definition of a name in the whole notebook, a check the one at its cell."""
    to_python = TransformerManager().transform_cell
    used: set[str] = set()
    for cell in code_cells(read_notebook(path)):
        for statement in ast.parse(to_python(source_of(cell))).body:
            names = names_of(statement)
            assert not names.binds & used, f"{path.stem} binds {names.binds & used} again"
            if is_exercise(cell):
                used |= names.now | names.later
        used -= set(dir(builtins))
