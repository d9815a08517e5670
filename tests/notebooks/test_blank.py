"""A learner's copy, as released, runs to its end: Restart and Run All never fails."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from helpers.course.build import learner_copy
from helpers.course.notebook_file import Notebook, read_notebook, source_of, write_notebook
from helpers.course.progress import decode
from tests.notebooks.solved import SOLVED, code_cells, environment, exercises_in

DEADLINE_S = 200
EACH = [
    pytest.param(path, id=path.stem, marks=() if path is SOLVED[0] else pytest.mark.soak)
    for path in SOLVED
]


def run_all(notebook: Path, env: dict[str, str], python: str) -> Notebook:
    """Run a notebook in its folder, in a separate kernel, and return it with its outputs."""
    words = [python, "-m", "nbconvert", "--to", "notebook", "--execute"]
    words += ["--output", "done.ipynb", notebook.name]
    done = subprocess.run(
        words, cwd=notebook.parent, env=env, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stderr[-8_000:]
    return read_notebook(notebook.with_name("done.ipynb"))


@pytest.mark.extended
@pytest.mark.timeout(DEADLINE_S + 20)
@pytest.mark.parametrize("path", EACH)
def test_blank_copy_runs_and_reports_unattempted(
    path: Path, tmp_path: Path, forking_python: str
) -> None:
    blank = tmp_path / path.name
    write_notebook(blank, learner_copy(read_notebook(path), path.name))
    env = environment(tmp_path)
    del env["REAL_RANKS_LIVE"]  # live views and buttons, as for a learner
    said = {
        match[1]: json.dumps(cell["outputs"], ensure_ascii=False)
        for cell in code_cells(run_all(blank, env, forking_python))
        if (match := re.search(r"\bcheck\((\w+)\)", source_of(cell)))
    }
    assert set(said) == {exercise.name for exercise in exercises_in(path)}
    for exercise in exercises_in(path):
        assert f"{exercise.heading}: not attempted" in said[exercise.name]
        assert "write your code in its place" in said[exercise.name]
    progress = Path(env["REAL_RANKS_PROGRESS"])
    assert not progress.exists() or not decode(progress.read_text()).exercises
