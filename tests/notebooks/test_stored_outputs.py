"""A second run of a solved notebook gives its stored outputs (`pytest --nbval`) and all points."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from helpers.course.build import KEEP_OUTPUT
from helpers.course.notebook_file import (
    Notebook,
    notebook_metadata,
    read_notebook,
    source_of,
    write_notebook,
)
from helpers.course.progress import decode
from tests.notebooks.solved import (
    code_cells,
    each_solved,
    environment,
    exercises_in,
    read_solved,
)

DEADLINE_S = 300
EXCUSE = "nbval-ignore-output"
"""A tag that excludes a cell's output from nbval's comparison."""
MAX_EXCUSES = 2
"""Maximum per notebook. Pictures of measurements need none, because their text is always the same."""
OPTIONAL = re.compile(r"# compared where (?P<module>\w+) is installed$", re.MULTILINE)
"""A cell that needs an extra; without the extra, it says how to install it."""

NEVER_STORED = {
    "a path of this machine": r"/(?:tmp|home|root)/|ipykernel_\d|site-packages|[A-Z]:\\\\",
    "an address in memory": r"0x[0-9a-f]{6,}",
    "a time of day": r"\b\d\d:\d\d:\d\d\b",
    "a port": r"\b127\.0\.0\.1\]?:\d+|\blocalhost:\d+",
}
GLOO_TIMEOUT = "0:30:00"


def nbval(notebook: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run `pytest --nbval` in the notebook's folder, comparing outputs."""
    words = [python, "-m", "pytest", "-p", "nbval.plugin", "--nbval", "--nbval-current-env"]
    words += ["-p", "tests.notebooks.as_in_jupyterlab", "-p", "no:cacheprovider"]
    words += ["-q", "--color=no", "--rootdir", ".", "-c", "/dev/null", notebook.name]
    return subprocess.run(
        words,
        cwd=notebook.parent,
        # other plugins, such as hypothesis, take a second to import
        env=environment(notebook.parent) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


def without_needless_excuses(notebook: Notebook) -> Notebook:
    for cell in code_cells(notebook):
        source = source_of(cell)
        optional = OPTIONAL.match(source)
        if optional and find_spec(optional["module"]):
            cell["metadata"]["tags"].remove(EXCUSE)
    return notebook


@pytest.mark.timeout(DEADLINE_S + 20)
@each_solved
def test_second_run_reproduces_outputs(path: Path, tmp_path: Path, forking_python: str) -> None:
    copy = tmp_path / path.name
    write_notebook(copy, without_needless_excuses(read_solved(path)))
    done = nbval(copy, forking_python)
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
    count = len(code_cells(read_notebook(path)))
    assert f"{count} passed" in done.stdout
    progress = decode((tmp_path / ".progress.json").read_text())
    lost = [each.name for each in exercises_in(path) if not progress.has_passed(each.name)]
    assert not lost, lost


def notebook_of(source: str, *outputs: dict[str, Any]) -> Notebook:
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": source}
    cells = [cell | {"outputs": list(outputs), "execution_count": 1}]
    return {"cells": cells, "metadata": notebook_metadata(), "nbformat": 4, "nbformat_minor": 5}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("mime", "stored", "passes"),
    [("text/plain", "'rank 0'", True), ("text/plain", "'rank 1'", False), ("text/html", "", False)],
)
def test_changed_output_fails_comparison(
    tmp_path: Path, forking_python: str, mime: str, stored: str, passes: bool
) -> None:
    data = {"text/plain": "'rank 0'"} | {mime: stored}
    output = {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}
    path = tmp_path / "small.ipynb"
    write_notebook(path, notebook_of("'rank ' + str(0)", output))
    done = nbval(path, forking_python)
    assert (done.returncode == 0) is passes, done.stdout


@each_solved
def test_skipped_cells_are_few_and_explained(path: Path) -> None:
    cells = code_cells(read_notebook(path))
    assert not [
        cell["id"] for cell in cells if "NBVAL" in source_of(cell)
    ]  # a lesson contains no directives for tests
    tags = {cell["id"]: cell["metadata"].get("tags", ()) for cell in cells}
    # a kept player contains the times of the run that it shows
    excused = [c for c in cells if EXCUSE in tags[c["id"]] and KEEP_OUTPUT not in tags[c["id"]]]
    for cell in excused:
        lines = [line for line in source_of(cell).splitlines() if not line.startswith("%%after")]
        reason = re.match(r"# (?P<words>\S+( \S+){3,})", lines[0])
        assert reason, f"{cell['id']}: say why in a comment on the first line, four words or more"
    assert len(excused) <= MAX_EXCUSES, [cell["id"] for cell in excused]


@each_solved
def test_stored_checks_have_passed(path: Path) -> None:
    """Otherwise a check that rejects the solution would be stored like any other output."""
    for cell in code_cells(read_notebook(path)):
        if source_of(cell).startswith(("result = check(", "%%after")):
            text = json.dumps(cell["outputs"], ensure_ascii=False)
            assert "It runs once Exercise" not in text and "Stuck? hint(" not in text, cell["id"]


@each_solved
def test_only_excuse_tag_skips_comparison(path: Path) -> None:
    for cell in code_cells(read_notebook(path)):
        if KEEP_OUTPUT in cell["metadata"].get("tags", ()):
            continue  # a player, which contains the times of the run that it shows
        tags = cell["metadata"].get("tags", [])
        assert {tag for tag in tags if tag.startswith("nbval")} <= {EXCUSE}, cell["id"]


@each_solved
def test_cells_ran_in_order_without_failure(path: Path) -> None:
    cells = code_cells(read_notebook(path))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        failed = any(output["output_type"] == "error" for output in cell["outputs"])
        assert failed == ("raises-exception" in cell["metadata"].get("tags", [])), cell["id"]


@each_solved
def test_outputs_contain_no_machine_specific_text(path: Path) -> None:
    for cell in code_cells(read_notebook(path)):
        for output in cell["outputs"]:
            output.get("data", {}).pop("image/png", None)
        text = json.dumps(cell["outputs"], ensure_ascii=False).replace(GLOO_TIMEOUT, "")
        for what, pattern in NEVER_STORED.items():
            found = re.search(pattern, text)
            assert not found, f"{cell['id']}: {what}: {found and found[0]}"
