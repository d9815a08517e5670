"""Unusual correct answers lose no points."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.grading.grader import Grader
from helpers.grading.submissions import Job
from tests.grading.hostile.attack import graded
from tests.grading.notebooks import RIGHT, write_notebook

NOTEBOOK = "02_blocking_p2p"
BODY = RIGHT.partition(":\n")[2]
HEAD = "def ping_pong(rank, world_size, ball, rounds):\n"

ODD: dict[str, tuple[str, ...]] = {
    "chatty": (HEAD + "    print('x' * 999_999)\n" + BODY,),
    "warnings and stderr": (
        "import sys, warnings",
        HEAD + "    warnings.warn('old')\n    print('oops', file=sys.stderr)\n" + BODY,
    ),
    "slow": ("import time", HEAD + "    time.sleep(0.5)\n" + BODY),
    "a lambda, a walrus, one letter": (
        "def go(r, n, b, k):\n"
        "    [(dist.send(b, 1), dist.recv(b, 1)) if r == 0 else\n"
        "     (dist.recv(b, 0), b.add_(1), dist.send(b, 0)) for _ in range(k) if r < 2]\n"
        "    return (b if (low := r < 2) else None)",
        "ping_pong = lambda r, n, b, k: go(r, n, b, k)",
    ),
    "helpers in other cells, star imports": (
        "from torch.distributed import *",
        "def hit(ball, to): send(ball, dst=to)",
        RIGHT.replace("dist.send(ball, dst=1)", "hit(ball, 1)"),
        "def take(ball, of): recv(ball, src=of)",
    ),
    "magics and shell lines": (
        "%matplotlib inline\n!pip list\n%load_ext autoreload",
        "%time x = 1\n" + RIGHT + "\n?ping_pong\n!ls",
        "%%bash\nexit 1",
    ),
    "duplicated and in a different order": (
        RIGHT.replace("ball += 1", "ball += 2"),
        RIGHT,
        "raise RuntimeError('not run')",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@pytest.mark.extended
@pytest.mark.parametrize("what", ODD)
def test_odd_right_answer_gets_all_points(lenient: Grader, folder: Path, what: str) -> None:
    record = graded(lenient, folder / what.replace(" ", "-"), *ODD[what], notebook=NOTEBOOK)
    exercise = next(each for each in record.exercises if each.name == "ping_pong")
    assert (exercise.outcome, exercise.points) == ("passed", 10.0), exercise
    assert exercise.flags == ()


def test_other_tool_notebook_gets_all_points(lenient: Grader, tmp_path: Path) -> None:
    path = write_notebook(tmp_path / f"{NOTEBOOK}.ipynb", RIGHT)
    notebook = json.loads(path.read_text())
    notebook["metadata"] = {"colab": {"provenance": []}, "vscode": {"interpreter": {"hash": "x"}}}
    for cell in notebook["cells"]:
        del cell["id"]
        cell["metadata"] = {"id": "Xy", "outputId": "z", "vscode": {"languageId": "python"}}
        cell["source"] = cell["source"].splitlines(keepends=True)
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8-sig")
    record = lenient.grade(Job("anna", path, path.name))
    assert record.points == 10, record
