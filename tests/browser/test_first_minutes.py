"""The first minutes of notebook 00, as it is handed out: its folded cell, and a page at 200 %."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from helpers.course.workspace import find_workspace, sign_notebook
from tests.browser.lab import Lab
from tests.browser.notebook_page import NUMBERED, NotebookPage

NAME = "00_start_here.ipynb"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a learner's folder with the notebook as it is handed out."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "home" / "data"))
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(find_workspace().notebooks / NAME, folder)
    sign_notebook(folder / NAME)
    return folder


@pytest.mark.timeout(180)
def test_the_folded_cell_runs(page: Page, lab: Lab, shots: Path | None) -> None:
    notebook = NotebookPage(page, shots)
    page.goto(lab.url(f"lab/tree/{NAME}"))
    first = notebook.code_cells.first
    expect(first.get_by_role("button", name="Play")).to_be_visible(timeout=60_000)
    notebook.photograph("opened")
    page.set_viewport_size({"width": 683, "height": 384})
    page.wait_for_timeout(1000)
    notebook.photograph("zoomed")
    stage, controls = first.locator(".rr-stage"), first.locator(".rr-controls")
    stage.scroll_into_view_if_needed()
    notebook.photograph("zoomed-stage")
    print(stage.bounding_box(), controls.bounding_box(), first.locator(".rr-player").bounding_box(), page.locator(".jp-WindowedPanel-outer").bounding_box())
    page.set_viewport_size({"width": 1280, "height": 900})
    check = notebook.cell("result = check(count_votes)")
    check.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(check).to_contain_text("Run All Above Selected Cell", timeout=60_000)
    notebook.photograph("unknown-name", check)
    folded = first.locator(".jp-Placeholder", has_text="import torch")
    folded.scroll_into_view_if_needed()
    folded.click()
    notebook.photograph("clicked")
    page.keyboard.press("Shift+Enter")
    check.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(check).to_contain_text("not attempted", timeout=60_000)
