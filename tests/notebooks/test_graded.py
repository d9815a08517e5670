"""Grade solved notebooks: unchanged ones, and ones changed by other tools and hasty learners."""

from __future__ import annotations

import ast
import copy
import re
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helpers.answers.build import Answer, Problem, normalize
from helpers.answers.reader import read_answers
from helpers.check_result import CheckResult, Outcome
from helpers.checks.check_notebook import grade_notebook
from helpers.course.build import learner_copy
from helpers.course.notebook_file import Notebook, read_notebook, source_of, write_notebook
from helpers.views.verdict import verdict_text
from tests.notebooks.solved import (
    COURSE,
    SOLVED,
    each_solved,
    environment,
    exercise_cell,
    exercises_in,
    read_solved,
)

Change = Callable[[Notebook], Notebook]
DEADLINE_S = 100
MODEL = SOLVED[2]
"""The notebook graded in most of these tests, as an example of all notebooks."""


def all_passed(results: list[CheckResult], path: Path) -> None:
    assert [result.name for result in results] == [each.name for each in exercises_in(path)]
    for result in results:
        assert result.passed, verdict_text(result)


def notes_of(results: list[CheckResult]) -> str:
    return "\n".join(note for result in results for note in result.notes)


# --- rearranged notebooks --------------------------------------------------------------------------


def reordered(notebook: Notebook) -> Notebook:
    return notebook | {"cells": notebook["cells"][::-1]}


def duplicated(notebook: Notebook) -> Notebook:
    return notebook | {"cells": [cell for cell in notebook["cells"] for _ in (0, 1)]}


def followed_by_the_stubs(notebook: Notebook) -> Notebook:
    return notebook | {"cells": notebook["cells"] + learner_copy(notebook)["cells"]}


def stripped(notebook: Notebook) -> Notebook:
    """Keep only the required fields of a cell, like tools that clean notebooks for git."""
    cells = [{key: cell[key] for key in ("cell_type", "source")} for cell in notebook["cells"]]
    return {"cells": cells}


def without_cell_types(notebook: Notebook) -> Notebook:
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return notebook | {"cells": [{"source": cell["source"]} for cell in code]}


def with_a_broken_cell(notebook: Notebook) -> Notebook:
    broken = {"cell_type": "code", "source": "for rank in range(4) print(rank)"}
    return notebook | {"cells": [broken, *notebook["cells"]]}


def as_vs_code_saves_it(notebook: Notebook) -> Notebook:
    for cell in notebook["cells"]:
        cell["metadata"] = {"vscode": {"languageId": "python"}}
        cell["source"] = source_of(cell).splitlines(keepends=True)
    kernel = {"display_name": ".venv (3.12.3)", "language": "python", "name": "python3"}
    return notebook | {"metadata": {"kernelspec": kernel, "orig_nbformat": 4}}


def as_colab_saves_it(notebook: Notebook) -> Notebook:
    install = {"cell_type": "code", "source": "!pip install torch\n%cd /content", "metadata": {}}
    for number, cell in enumerate(notebook["cells"]):
        cell.pop("id")
        cell["metadata"] = {"id": f"x{number}", "cellView": "form", "outputId": "y"}
        if cell["cell_type"] == "code":
            cell["source"] = "#@title A cell\n" + source_of(cell)
    metadata = {"colab": {"provenance": []}, "accelerator": "GPU"}
    cells = [install, *notebook["cells"]]
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 0}


each_change = pytest.mark.parametrize(
    ("change", "noted"),
    [
        (duplicated, "is defined 2 times: the last one is taken"),
        (followed_by_the_stubs, "is still the stub, so the version in cell"),
        (stripped, ""),
        (without_cell_types, "cell 1 has no cell type: treated as code"),
        (with_a_broken_cell, "cell 1 cannot be parsed (line 1): skipped"),
        (as_vs_code_saves_it, ""),
        (as_colab_saves_it, ""),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)


JUDGED_AGAIN = (followed_by_the_stubs, as_colab_saves_it)
"""Changes after which answers may have other imports, or imports in a different order."""


@pytest.mark.extended
@pytest.mark.parametrize("change", JUDGED_AGAIN)
def test_passes_solutions_with_changed_source(change: Change, tmp_path: Path) -> None:
    handed_in = tmp_path / MODEL.name
    write_notebook(handed_in, change(read_solved(MODEL)))
    all_passed(grade_notebook(handed_in), MODEL)


@cache
def as_solved(path: Path) -> Mapping[str, Answer | Problem]:
    """Read the answers of a solved notebook once, for all comparisons with them."""
    return read_answers(path, [each.name for each in exercises_in(path)])


@pytest.mark.sample(12)
@each_change
@each_solved
def test_reads_moved_cells_and_notes_repairs(
    path: Path, change: Change, noted: str, tmp_path: Path
) -> None:
    handed_in = tmp_path / path.name
    write_notebook(handed_in, change(read_solved(path)))
    before = as_solved(path)
    found = read_answers(handed_in, [*before])
    for name, answer in found.items():
        assert isinstance(answer, Answer), f"{name}: {answer}"
        was = before[name]
        if change not in JUDGED_AGAIN:  # the same source has the same verdict as above
            assert isinstance(was, Answer) and normalize(answer) == normalize(was)
        assert noted in "\n".join(answer.notes) and bool(noted) == bool(answer.notes)


@pytest.mark.extended
def test_passes_reversed_cells_and_notes_moves(tmp_path: Path) -> None:
    path = MODEL
    notebook = read_solved(path)
    handed_in = tmp_path / path.name
    write_notebook(handed_in, reordered(notebook))
    all_passed(results := grade_notebook(handed_in), path)
    for result in results:
        source = source_of(notebook["cells"][exercise_cell(notebook, result.name)])
        assert ("is needed earlier" in notes_of([result])) is needs_torch_to_be_defined(source)


def needs_torch_to_be_defined(source: str) -> bool:
    """Return whether a signature mentions torch, so that torch's import cannot stay below it."""
    heads = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    texts = [ast.unparse(part) for head in heads for part in (head.args, head.returns) if part]
    return any(re.search(r"\b(torch|dist)\.", text) for text in texts)


@pytest.mark.extended
def test_recognizes_renamed_notebook_by_exercises(tmp_path: Path) -> None:
    path = MODEL
    handed_in = tmp_path / f"Copy of {path.stem} (1).ipynb"
    handed_in.write_bytes(path.read_bytes())
    all_passed(grade_notebook(handed_in), path)


@pytest.mark.extended
def test_deleted_exercise_costs_only_itself(tmp_path: Path) -> None:
    path = MODEL
    notebook, exercise = read_solved(path), exercises_in(path)[0]
    del notebook["cells"][exercise_cell(notebook, exercise.name)]
    handed_in = tmp_path / path.name
    write_notebook(handed_in, notebook)
    first, *others = grade_notebook(handed_in)
    assert first.outcome is Outcome.NOT_ATTEMPTED
    assert first.message == f"no cell defines `{exercise.name}`."
    assert all(result.passed for result in others)


@pytest.mark.extended
def test_reports_deleted_import(tmp_path: Path) -> None:
    path = MODEL
    notebook = read_solved(path)
    notebook["cells"] = [c for c in notebook["cells"] if "import torch" not in source_of(c)]
    handed_in = tmp_path / path.name
    write_notebook(handed_in, notebook)
    for result in grade_notebook(handed_in):
        if not result.passed:
            assert "no cell defines `" in notes_of([result]), verdict_text(result)


# --- the command ------------------------------------------------------------------------------------


def course_check(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COURSE, "check", str(path), *words],
        env=environment(path.parent),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


@pytest.mark.extended
def test_command_prints_results_and_returns_0(tmp_path: Path) -> None:
    path = MODEL
    handed_in = tmp_path / path.name
    write_notebook(handed_in, with_a_broken_cell(read_solved(path)))
    done = course_check(handed_in)
    assert done.returncode == 0, done.stdout + done.stderr
    for exercise in exercises_in(path):
        assert f"{exercise.heading}: passed" in done.stdout
    assert done.stdout.count("cell 1 cannot be parsed") == len(exercises_in(path))
    count = len(exercises_in(path))
    assert f"{count} of {count} exercises passed." in done.stdout


@pytest.mark.extended
def test_command_checks_one_exercise_alone(tmp_path: Path) -> None:
    first = exercises_in(MODEL)[0]
    done = course_check(MODEL, "--only", first.number)
    assert done.returncode == 0 and "1 of 1 exercise passed" in done.stdout, done.stdout
    done = course_check(MODEL, "--only", "ping_pon")
    assert done.returncode == 1 and "Did you mean ping_pong" in done.stderr


def test_command_returns_1_for_missing_answers(tmp_path: Path) -> None:
    path = MODEL
    handed_in = tmp_path / path.name
    write_notebook(handed_in, learner_copy(read_notebook(path)))
    done = course_check(handed_in)
    assert done.returncode == 1
    count = len(exercises_in(path))
    assert f"0 of {count} exercises passed, {count} not attempted" in done.stdout


def cut_off(path: Path) -> bytes:
    content = path.read_bytes()
    return content[: len(content) // 2]


UNREADABLE: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "cut off": (cut_off, "is cut off"),
    "empty": (lambda path: b"", "is empty"),
    "a picture": (lambda path: b"\x89PNG\r\n\x1a\n\xff\xfe", "is a picture"),
    "a script": (lambda path: b"import torch\n", "is a Python script"),
    "a list": (lambda path: b"[1, 2]", "not a notebook"),
    "no cells": (lambda path: b'{"nbformat": 4}', "has no cells"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", UNREADABLE)
def test_command_returns_2_for_unreadable_notebook(kind: str, tmp_path: Path) -> None:
    make, says = UNREADABLE[kind]
    path = tmp_path / SOLVED[0].name
    path.write_bytes(make(SOLVED[0]))
    done = course_check(path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stdout and len(done.stdout.splitlines()) == 1
    assert path.name in done.stdout and "Traceback" not in done.stdout + done.stderr


def test_command_returns_2_for_missing_file(tmp_path: Path) -> None:
    done = course_check(tmp_path / "02_nowhere.ipynb")
    assert done.returncode == 2
    assert "02_nowhere.ipynb does not exist" in done.stdout + done.stderr


@pytest.mark.extended
def test_command_returns_2_for_foreign_notebook(tmp_path: Path) -> None:
    path = tmp_path / "knitting.ipynb"
    cell: dict[str, Any] = {"cell_type": "code", "source": "def purl():\n    return 2"}
    write_notebook(path, copy.deepcopy({"cells": [cell]}))
    done = course_check(path)
    assert done.returncode == 2
    assert "it contains no exercise of this course" in done.stdout
