"""Test `course watch`: only changed answers are checked when the notebook is saved."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers.course import watch_command
from helpers.course.notebook_file import read_notebook, write_notebook
from helpers.course.progress import read_progress
from helpers.course.saves import Saves
from helpers.course.workspace import find_workspace

RIGHT = (
    "    counted = torch.tensor([votes if is_valid else 0])\n"
    "    dist.all_reduce(counted)\n    return counted.item()\n"
)
STUB = '    raise NotImplementedError("Exercise 0.1: Count the votes")\n'


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    path = tmp_path / "00_start_here.ipynb"
    shutil.copy(find_workspace().notebooks / path.name, path)
    return path


def answer(path: Path, body: str) -> None:
    """Replace the stub of 0.1 with an answer, like saving in JupyterLab."""
    content = read_notebook(path)
    for cell in content["cells"]:
        cell["source"] = [
            body if line.rstrip("\n") == STUB.rstrip("\n") else line for line in cell["source"]
        ]
    write_notebook(path, content)


def test_checks_only_changed_answers(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blank = watch_command.check_changed(notebook, {})
    assert not capsys.readouterr().out  # a stub is not an attempt
    answer(notebook, RIGHT)
    now = watch_command.check_changed(notebook, blank)
    shown = capsys.readouterr().out
    assert "Exercise 0.1: Count the votes (5 min, ●○○○○): passed" in shown
    assert "Next: Exercise 0.2, My slice" in shown
    assert read_progress().exercises["count_votes"].best.outcome == "passed"
    assert watch_command.check_changed(notebook, now) == now
    assert not capsys.readouterr().out


def test_postpones_unreadable_file(tmp_path: Path) -> None:
    broken = tmp_path / "02_blocking_p2p.ipynb"
    broken.write_text("{")
    assert watch_command.check_changed(broken, {}) == {}


@pytest.mark.extended
def test_counts_only_changes_since_start(notebook: Path) -> None:
    answer(notebook, RIGHT)
    os.utime(notebook, (0, 0))
    saves = Saves.since_start(notebook.parent)
    before = watch_command.read_sources(notebook.name, saves.first[notebook])
    assert before["count_votes"] and not before["my_slice"]
    assert watch_command.read_sources(notebook.name, None) == {}


def test_counts_saves_after_start(notebook: Path) -> None:
    saves = Saves.since_start(notebook.parent)  # the fixture wrote it after the start
    assert notebook not in saves.first and next(saves.follow()) == notebook
    os.utime(notebook, (0, 0))
    assert next(saves.follow()) == notebook


@contextmanager
def watching(work: Path) -> Iterator[subprocess.Popen[str]]:
    env = os.environ | {"REAL_RANKS_WORK": str(work), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "helpers.course.cli", "watch"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        deadline = threading.Timer(100, process.kill)
        deadline.start()
        try:
            yield process
        finally:
            deadline.cancel()
            process.kill()


@pytest.mark.extended
@pytest.mark.parametrize(
    "is_at_once",
    [
        pytest.param(False, id="after-first-line", marks=pytest.mark.extended),
        pytest.param(True, id="before-first-line"),
    ],
)
def test_command_checks_each_save(notebook: Path, is_at_once: bool) -> None:
    os.utime(notebook, (0, 0))
    with watching(notebook.parent) as process:
        assert process.stdout is not None
        if is_at_once:
            answer(notebook, RIGHT)
        assert process.stdout.readline().startswith("Watching ")
        if not is_at_once:
            answer(notebook, RIGHT)
        assert any(line.strip().startswith("Next:") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
