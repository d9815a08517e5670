"""Open every solved notebook in real JupyterLab in both themes, without errors or stuck cells.

`RR_SHOTS=folder make soak TEST_ARGS=tests/browser` stores the pictures, so that you can look at them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from helpers.course.notebook_file import read_notebook
from helpers.course.workspace import find_workspace
from tests.browser.lab import Lab
from tests.browser.notebook_page import NotebookPage

RUN_ALL_S = 240.0
SOLVED = sorted(path.name for path in find_workspace().solutions.glob("*.ipynb"))
STUCK = ("Error displaying widget", "Loading widget", "Click to show javascript error")


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", SOLVED)
def test_notebook_runs_without_page_errors(
    name: str, page: Page, errors: list[str], lab: Lab, work: Path, shots: Path | None
) -> None:
    cells = [c for c in read_notebook(work / name)["cells"] if c["cell_type"] == "code"]
    meant = sum("raises-exception" in c["metadata"].get("tags", []) for c in cells)
    page.goto(lab.url(f"lab/tree/{name}"))
    notebook = NotebookPage(page, shots)
    notebook.wait_until_open(len(cells))
    notebook.run_all()
    notebook.wait_until_all_have_run(RUN_ALL_S)
    expect(page.locator(".jp-NotebookPanel [data-mime-type*='error']")).to_have_count(meant)
    for words in STUCK:
        expect(page.locator(".jp-NotebookPanel").get_by_text(words)).to_have_count(0)
    for player in page.locator(".rr-player .rr-run").all():
        assert player.evaluate("drawing => drawing.clientWidth > 300")
    assert not errors, errors[:5]
    for theme, width in (("Dark", 1000), ("Light", 1600)):
        notebook.use_theme(f"JupyterLab {theme}")
        notebook.resize(width)
        notebook.photograph_whole(f"{name[:2]}-{theme.lower()}")
        notebook.assert_accessible()
        notebook.assert_nothing_cut()
