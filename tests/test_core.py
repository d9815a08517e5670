"""The core works in a copy without the features, and reports what the copy lacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.grading.notebooks import IMPORTS, RIGHT
from tests.test_house import FEATURES, ROOT

DEADLINE_S = 100

# The finder of an editable installation would fill the gaps of the copy.
HIDE = f"""
import sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if name in {[f"helpers.{name}" for name in FEATURES]}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden)
"""

CHECK = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

shell = InteractiveShell.instance(config=Config(HistoryManager={"hist_file": ":memory:"}))
for cell in (ANSWER, "from helpers import check", "result = check('ping_pong')"):
    shell.run_cell(cell, store_history=True).raise_error()
result = shell.user_ns["result"]
print(result.outcome.value, result.next_step, result.notes, sep=" | ")
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the course without its features, with an attempt at notebook 00."""
    root = tmp_path_factory.mktemp("core")
    left_out = shutil.ignore_patterns("__pycache__", *FEATURES)
    shutil.copytree(ROOT / "helpers", root / "helpers", ignore=left_out)
    for name in ("notebooks", "solutions", "work"):
        (root / name).mkdir()
        shutil.copy(ROOT / "solutions" / "00_start_here.ipynb", root / name)
    shutil.copy(ROOT / "pyproject.toml", root)
    (root / "hide").mkdir()
    (root / "hide" / "sitecustomize.py").write_text(HIDE)
    return root


def run(core: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in the copy."""
    env = {
        **os.environ,
        "PYTHONPATH": f"{core / 'hide'}{os.pathsep}{core}",
        "REAL_RANKS_PROGRESS": str(core / "progress.json"),
    }
    return subprocess.run(
        [sys.executable, *words],
        cwd=core,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


def course(core: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(core, "-m", "helpers.course.cli", *words)


def test_core_opens_lab(core: Path) -> None:
    done = course(core, "lab", "--version", *["--allow-root"] * (os.geteuid() == 0))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == version("jupyterlab")


@pytest.mark.extended
def test_core_checks_notebook(core: Path) -> None:
    done = course(core, "check", "00", "--only", "0.1")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 exercise passed." in done.stdout


def test_core_checks_cell(core: Path) -> None:
    done = run(core, "-c", f"ANSWER = {IMPORTS + RIGHT!r}\n{CHECK}")
    assert done.stdout.splitlines()[-1] == "passed | 04_collectives | ()", done.stderr
    assert json.loads((core / "progress.json").read_text())["exercises"]["ping_pong"]


def test_help_lists_only_available_commands(core: Path) -> None:
    done = course(core, "--help")
    assert done.returncode == 0, done.stderr
    assert "\n  check " in done.stdout and "\n  mistakes " in done.stdout
    assert "To teach" not in done.stdout and "grade" not in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("grade", ".", "--out", "x"), "this copy is a learner's: it has no grader."),
        (("mistakes", "."), "this copy is a learner's: it has no grader."),
        (("room", "serve"), "this copy of the course has no helpers.room."),
    ],
)
def test_absent_command_error_fits_one_line(core: Path, words: tuple[str, ...], said: str) -> None:
    done = course(core, *words)
    assert (done.returncode, done.stderr) == (1, f"Error: {said}\n")


@pytest.mark.parametrize("name", ["join", "imagine", "explore", "hosts"])
def test_explains_absent_names(core: Path, name: str) -> None:
    done = run(core, "-c", f"from helpers import {name}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: this copy of the course has no helpers."), last
    assert last.endswith(f"and so no {name}")


@pytest.mark.extended
def test_listeners_are_imported_after_checks() -> None:
    program = (
        "import sys, helpers.checks.check, helpers.course.cli; "
        "sys.exit(bool({'helpers.room.outbox', 'helpers.course.next_steps'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
