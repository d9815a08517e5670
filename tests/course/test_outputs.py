"""Stored outputs come from real kernels and are the same from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from helpers.course import claims
from helpers.course.notebook_file import NotebookError, write_notebook
from helpers.course.outputs import store_outputs

NOISE = {"execution": {"iopub.execute_input": "2026-01-01"}, "collapsed": False}


def code(number: int, source: str, *tags: str) -> dict[str, Any]:
    metadata = NOISE | ({"tags": list(tags)} if tags else {})
    cell = {"cell_type": "code", "id": f"c{number}", "metadata": metadata, "source": source}
    return cell | {"outputs": [], "execution_count": None}


def write(path: Path, *cells: dict[str, Any]) -> None:
    noisy = {"language_info": {"name": "python", "version": "3.0"}, "widgets": {"state": {}}}
    write_notebook(path, {"cells": cells, "metadata": noisy, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.extended
def test_stored_outputs_stay_identical_on_rerun(tmp_path: Path) -> None:
    path = tmp_path / "02_topic.ipynb"
    write(
        path,
        code(1, "import os\nfrom pathlib import Path\nprint('a', flush=True)\nprint('b')"),
        code(2, "os.environ['REAL_RANKS_LIVE'], sorted(p.name for p in Path().glob('*'))"),
        code(3, "open('rubbish', 'w').close()\nos.environ['REAL_RANKS_PROGRESS'][:5]"),
        code(4, "1 / 0", "raises-exception"),
        code(5, "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"),
        code(6, "import ipywidgets\nipywidgets.IntSlider();"),
    )
    store_outputs(path)
    first = path.read_bytes()
    store_outputs(path)
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]

    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert stored.metadata.keys() == {"kernelspec", "language_info"}
    assert stored.metadata.language_info == {"name": "python"}
    assert [cell.metadata for cell in stored.cells[:4]] == [{}] * 3 + [
        {"tags": ["raises-exception"]}
    ]
    assert [cell.execution_count for cell in stored.cells] == [1, 2, 3, 4, 5, 6]
    outputs = [cell.outputs for cell in stored.cells]
    assert [output.text for output in outputs[0]] == ["a\nb\n"]
    assert outputs[1][0].data["text/plain"] == "('0', ['02_topic.ipynb'])"
    assert outputs[3][0].ename == "ZeroDivisionError"
    assert "image/png" in outputs[4][0].data


@pytest.mark.extended
def test_reports_failing_notebook_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "03_topic.ipynb"
    write(path, code(1, "1 + 1"), code(2, "nowhere"))
    before = path.read_bytes()
    with pytest.raises(NotebookError, match=r"(?s)03_topic\.ipynb.*nowhere.*NameError"):
        store_outputs(path)
    assert path.read_bytes() == before


@pytest.mark.extended
def test_reports_notebook_with_dead_kernel(tmp_path: Path) -> None:
    path = tmp_path / "04_topic.ipynb"
    write(path, code(1, "import os\nos._exit(3)"))
    with pytest.raises(NotebookError, match=r"04_topic\.ipynb did not run to its end"):
        store_outputs(path)


@pytest.mark.extended
def test_keeps_author_progress_and_displays_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.json"
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(mine))
    monkeypatch.setenv("MPLBACKEND", "agg")
    path = tmp_path / "05_topic.ipynb"
    source = "from helpers.course.progress import read_progress, record_score\n"
    source += "record_score('swap', 'passed', 1, 1)\n"
    write(path, code(1, source + "read_progress().exercises['swap'].tries"))
    store_outputs(path)
    assert not mine.exists()
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].data["text/plain"] == "1"


def with_claim(cell: dict[str, Any], claim: str) -> dict[str, Any]:
    return cell | {"metadata": {"claim": claim}}


def test_reruns_notebook_until_claims_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_IDLE_WITHIN_S", 0.0)
    path, runs = tmp_path / "05_topic.ipynb", tmp_path / "runs"
    counted = (
        f"with open({str(runs)!r}, 'a') as f: f.write('x')\nn = len(open({str(runs)!r}).read())\nn"
    )
    write(path, with_claim(code(1, counted), "n > 1"), code(2, "n + 1"))
    store_outputs(path)
    assert runs.read_text() == "xx"
    stored = nbformat.read(path, as_version=4)
    assert [cell.outputs[0].data["text/plain"] for cell in stored.cells] == ["2", "3"]
    assert stored.cells[0].metadata == {"claim": "n > 1"}


@pytest.mark.extended
@pytest.mark.parametrize(
    ("claim", "reason"), [("n > 1", "but: False"), ("missing > 1", "but: NameError: .*missing")]
)
def test_discards_outputs_refuting_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: str, reason: str
) -> None:
    monkeypatch.setattr(claims, "_IDLE_WITHIN_S", 0.0)
    path = tmp_path / "06_topic.ipynb"
    write(path, code(1, "n = 1"), with_claim(code(2, "n"), claim))
    before = path.read_bytes()
    with pytest.raises(NotebookError, match=f"06_topic.ipynb, cell 1: .*claims {claim}, {reason}"):
        store_outputs(path)
    assert path.read_bytes() == before
