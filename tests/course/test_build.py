"""Test that the learner's copies are exactly the solved notebooks with stubs for solutions."""

from __future__ import annotations

import ast
import copy
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from helpers.course.build import build, learner_copy
from helpers.course.notebook_file import NotebookError, read_notebook, source_of, write_notebook
from helpers.course.workspace import find_workspace

HEADING = "## Exercise 5.3: Ring all-reduce (15 min, ●●●○○)\n\nSum over a ring."

SOLVED = '''\
def ring_all_reduce(rank: int, x: list[int]) -> list[int]:
    """Sum `x` over all ranks."""
    size = len(x)
    ### BEGIN SOLUTION
    for i in range(size):
        x[i] += rank
    return x
    ### END SOLUTION
'''

STUB = '''\
def ring_all_reduce(rank: int, x: list[int]) -> list[int]:
    """Sum `x` over all ranks."""
    size = len(x)
    raise NotImplementedError("Exercise 5.3: Ring all-reduce")
'''


def code(source: str, cell_id: str = "c1", **extra: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "id": cell_id, "metadata": {}, "source": source}
    return cell | {"outputs": [], "execution_count": None} | extra


def markdown(source: str, cell_id: str = "m1") -> dict[str, Any]:
    return {"cell_type": "markdown", "id": cell_id, "metadata": {}, "source": source}


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def stubbed(source: str, heading: str = HEADING) -> str:
    return source_of(learner_copy(notebook(markdown(heading), code(source)))["cells"][1])


def error_for(source: str, heading: str = HEADING) -> str:
    with pytest.raises(NotebookError) as caught:
        learner_copy(notebook(markdown(heading), code(source)), "05_algorithms.ipynb")
    assert "05_algorithms.ipynb, cell 2" in str(caught.value)
    return str(caught.value)


def test_stub_mentions_its_exercise() -> None:
    assert stubbed(SOLVED) == STUB


def test_called_stub_raises_error() -> None:
    namespace: dict[str, Any] = {}
    exec(stubbed(SOLVED), namespace)
    with pytest.raises(NotImplementedError, match=r"^Exercise 5\.3: Ring all-reduce$"):
        namespace["ring_all_reduce"](0, [1])


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# Exercise 0.1: Hello", "Exercise 0.1: Hello"),
        ("### Exercise 14.4: 1F1B (20 min, ●●●●○, further)", "Exercise 14.4: 1F1B"),
        ('## Exercise 1.1: Say "hi" in `env://` (5 min)  ', 'Exercise 1.1: Say "hi" in `env://`'),
        ("## Exercise 2.2: Ring (of tokens)", "Exercise 2.2: Ring (of tokens)"),
        ("text\n\n## Exercise 4.1: A (5 min, ●○○○○)\n## Exercise 4.2: B", "Exercise 4.2: B"),
    ],
)
def test_stub_title_matches_exercise_heading(heading: str, title: str) -> None:
    raised = ast.parse(stubbed(SOLVED, heading)).body[0].body[-1]  # type: ignore[attr-defined]
    assert ast.literal_eval(raised.exc.args[0]) == title


def test_stub_uses_last_exercise_heading_above() -> None:
    solved = notebook(
        markdown("## Exercise 5.1: Tree", "a"),
        markdown(HEADING, "b"),
        markdown("### Hints\n\nAsk for one.", "c"),
        code("x = 1", "d"),
        code(SOLVED, "e"),
        markdown("## Exercise 5.4: Later", "f"),
    )
    assert source_of(learner_copy(solved)["cells"][4]) == STUB


def test_replaces_multiple_and_nested_solutions() -> None:
    solved = """\
class Bucket:
    size: int = 3

    def add(self, x):
        ### BEGIN SOLUTION
        self.x = x
        ### END SOLUTION

    async def flush(self):
        if self.x:
            ### BEGIN SOLUTION
            def inner():
                return 1
            await inner()
            ### END SOLUTION
        return self.size"""
    stub = 'raise NotImplementedError("Exercise 5.3: Ring all-reduce")'
    assert stubbed(solved) == (
        f"class Bucket:\n    size: int = 3\n\n    def add(self, x):\n        {stub}\n\n"
        f"    async def flush(self):\n        if self.x:\n            {stub}\n"
        "        return self.size"
    )


def test_keeps_cells_outside_solutions_unchanged() -> None:
    solved = notebook(
        markdown(HEADING, "a"),
        code(SOLVED, "b", metadata={"tags": ["exercise"], "execution": {"t": 1}, "scrolled": True}),
        code("check(ring_all_reduce)", "c", execution_count=7, outputs=[{"output_type": "stream"}]),
        {"cell_type": "raw", "id": "d", "metadata": {}, "source": ["one\n", "two"]},
    )
    before = copy.deepcopy(solved)
    made = learner_copy(solved)
    assert solved == before
    assert [cell["id"] for cell in made["cells"]] == ["a", "b", "c", "d"]
    assert made["cells"][1]["metadata"] == {"tags": ["exercise"]}
    assert made["cells"][2]["outputs"] == [] and made["cells"][2]["execution_count"] is None
    for index in (0, 2, 3):
        assert source_of(made["cells"][index]) == source_of(solved["cells"][index])
    assert "outputs" not in made["cells"][0]
    nbformat.validate(made)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def f():\n    ### BEGIN SOLUTION\n    return 1", "line 2: '### BEGIN SOLUTION' without"),
        ("def f():\n    return 1\n    ### END SOLUTION", "line 3: '### END SOLUTION' without"),
        (
            "def f():\n    ### BEGIN SOLUTION\n    ### BEGIN SOLUTION\n    return 1"
            "\n    ### END SOLUTION\n    ### END SOLUTION",
            "line 3: a second '### BEGIN SOLUTION'",
        ),
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "line 1: the solution is not inside"),
        (
            "class C:\n    ### BEGIN SOLUTION\n    x = 1\n    ### END SOLUTION",
            "line 2: the solution is not inside a function",
        ),
        (
            "def f():\n    class C:\n        ### BEGIN SOLUTION\n        x = 1\n"
            "        ### END SOLUTION",
            "line 3: the solution is not inside a function",
        ),
        ("def f():\n    ### BEGIN SOLUTION\n    ### END SOLUTION\n    return 1", "no statement"),
        (
            'def f():\n    """\n    ### BEGIN SOLUTION\n    ### END SOLUTION\n    """',
            "no statement",
        ),
        (
            "%%ranks 2\ndef f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION",
            "without magics",
        ),
        (
            "def f():\n    ### BEGIN SOLUTION\n    x = (1,\n    ### END SOLUTION\n    2)",
            "whole statements",
        ),
        (
            "def f():\n    # begin solution\n    return 1\n    # end solution",
            "line 2: write '### B",
        ),
    ],
)
def test_error_locates_malformed_solution_region(source: str, words: str) -> None:
    assert words in error_for(source)


def test_refuses_solution_without_exercise_heading() -> None:
    assert "no exercise heading" in error_for(SOLVED, "## Ring all-reduce")


@pytest.mark.parametrize("second_id", ["", "m1"])
def test_refuses_missing_and_duplicate_cell_ids(second_id: str) -> None:
    with pytest.raises(NotebookError, match="cell 2"):
        learner_copy(notebook(markdown(HEADING), code("x", second_id)))


def test_rebuild_keeps_bytes_and_removes_orphans(tmp_path: Path) -> None:
    solutions, notebooks = tmp_path / "solutions", tmp_path / "notebooks"
    solutions.mkdir()
    notebooks.mkdir()
    write_notebook(solutions / "05_b.ipynb", notebook(markdown(HEADING), code(SOLVED)))
    write_notebook(solutions / "04_a.ipynb", notebook(markdown("# A")))
    (notebooks / "03_gone.ipynb").write_text("{}")
    made = build(solutions, notebooks)
    assert made == [notebooks / "04_a.ipynb", notebooks / "05_b.ipynb"]
    assert sorted(notebooks.iterdir()) == made
    first = [path.read_bytes() for path in made]
    assert build(solutions, notebooks) == made
    assert [path.read_bytes() for path in made] == first
    assert "●●●○○".encode() in first[1] and first[1].endswith(b"}\n")
    nbformat.validate(nbformat.read(made[1], as_version=4))


def test_invalid_notebook_prevents_whole_build(tmp_path: Path) -> None:
    solutions, notebooks = tmp_path / "solutions", tmp_path / "notebooks"
    solutions.mkdir()
    write_notebook(solutions / "01_good.ipynb", notebook(markdown("# A")))
    write_notebook(solutions / "02_bad.ipynb", notebook(code(SOLVED)))
    with pytest.raises(NotebookError, match=r"02_bad\.ipynb, cell 1"):
        build(solutions, notebooks)
    assert not list(notebooks.glob("*"))


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"cells": 3}), "\x00\xff"])
def test_reports_non_notebook_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "02_cut.ipynb"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(NotebookError, match=r"02_cut\.ipynb is not a notebook"):
        read_notebook(path)


def test_stored_learner_copies_match_build(tmp_path: Path) -> None:
    workspace = find_workspace()
    made = build(workspace.solutions, tmp_path)
    stored = sorted(workspace.notebooks.glob("*.ipynb"))
    assert [path.name for path in made] == [path.name for path in stored], "run `make notebooks`"
    for fresh, old in zip(made, stored, strict=True):
        assert fresh.read_text("utf-8") == old.read_text("utf-8"), f"{old.name}: `make notebooks`"
