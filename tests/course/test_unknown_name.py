"""A NameError explains how to run the cells above if one of them defines the name."""

from __future__ import annotations

import pytest

from helpers.course.look import KERNELS
from helpers.course.notebook_file import source_of
from helpers.course.unknown_name import advice, register
from helpers.course.workspace import cells_of, find_workspace
from tests.kernel.session import Kernel

CELLS = [
    "import torch\nimport torch.distributed as dist\nfrom helpers import check",
    "counter, (low, *high) = 1, (2, 3)\nfor step in range(2):\n    last = step",
    "def add_up(rank, world_size):\n    inner = 1\n    return inner",
    "add_up(torch, counter)",
    "later = 1",
    "%%ranks 2\nmagic = 1",
]


@pytest.mark.parametrize(
    "name", ["torch", "dist", "check", "counter", "low", "high", "step", "last", "add_up"]
)
def test_finds_names_of_earlier_cells(name: str) -> None:
    said = f"{name!r} is defined in an earlier cell. Choose Run → Run All Above Selected Cell."
    assert advice(name, CELLS[3], CELLS, ()) == said
    assert advice(name, "a new cell", CELLS, ()) == said


@pytest.mark.parametrize("name", ["later", "inner", "rank", "magic", "typo", ""])
def test_unknown_names_get_no_advice(name: str) -> None:
    assert advice(name, CELLS[3], CELLS, ()) == ""


@pytest.mark.parametrize("call", ["check(count_vote)", "result = check( count_vote )"])
def test_suggests_similar_exercise_names(call: str) -> None:
    exercises = ("count_votes", "my_slice")
    said = "No exercise is called 'count_vote'. Did you mean count_votes?"
    assert advice("count_vote", call, CELLS, ("check",), exercises) == said
    assert advice("count_vote", "print(count_vote)", CELLS, (), exercises) == ""
    assert "first code cell" in advice(
        "check", "check(count_vote)", CELLS[1:], ("check",), exercises
    )


def test_explains_course_names_without_file() -> None:
    assert "first code cell" in advice("check", "check(f)", [], ("check", "launch"))


@pytest.mark.extended
def test_fresh_kernel_error_includes_advice() -> None:
    path = find_workspace().notebooks / "00_start_here.ipynb"
    checked = next(s for s in map(source_of, cells_of(path.stem)) if "check(" in s and "=" in s)
    kernel = Kernel(spec=KERNELS / "python3", JPY_SESSION_NAME=str(path))
    try:
        cell = kernel.run(checked)
        assert cell.status == "error"
        assert cell.error == "NameError"
        assert "'check' is defined in an earlier cell. Choose Run" in cell.message
        unbound = "def f():\n    check\n    check = 1\n\nf()"
        for other in ("typo", unbound):
            assert "Run All Above" not in kernel.run(other).message
        assert kernel.value("1 + 1") == "2\n"
    finally:
        kernel.close()


def test_other_shells_keep_their_handlers() -> None:
    class Shell:
        custom_exceptions = (ValueError,)

    register(Shell(), ())  # a handler would raise AttributeError
