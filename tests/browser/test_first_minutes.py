"""Test the first minutes of notebook 00, as released: its folded cell, and a page at 200 %."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from helpers.course.workspace import find_workspace, sign_notebook
from tests.browser.lab import Lab
from tests.browser.notebook_page import NotebookPage

NAME = "00_start_here.ipynb"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a learner's folder with the notebook as released."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "home" / "data"))
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(find_workspace().notebooks / NAME, folder)
    sign_notebook(folder / NAME)
    return folder


@pytest.fixture
def notebook(page: Page, lab: Lab, shots: Path | None) -> NotebookPage:
    """Open the notebook, and wait for the player of its first cell."""
    page.goto(lab.url(f"lab/tree/{NAME}"))
    notebook = NotebookPage(page, shots)
    player = notebook.code_cells.first.get_by_role("button", name="Play")
    expect(player).to_be_visible(timeout=60_000)
    notebook.wait_until_idle()
    return notebook


@pytest.mark.timeout(180)
def test_folded_import_cell_defines_launch(page: Page, notebook: NotebookPage) -> None:
    launched = notebook.cell("def add_up(rank")
    launched.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(launched).to_contain_text("'launch' is defined in an earlier cell", timeout=60_000)
    notebook.photograph("unknown-name", launched)
    folded = notebook.code_cells.first.locator(".jp-Placeholder", has_text="import torch")
    folded.scroll_into_view_if_needed()
    folded.click()
    page.keyboard.press("Shift+Enter")
    launched.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(launched).to_contain_text("1111", timeout=60_000)


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_player_fits_page_at_double_zoom(page: Page, notebook: NotebookPage) -> None:
    notebook.resize(683, 384)
    page.keyboard.press("Control+b")  # View, Appearance, Show Left Sidebar
    first = notebook.code_cells.first
    controls, line = first.locator(".rr-controls"), first.locator(".rr-line").first
    page.wait_for_timeout(1000)  # the player is laid out again
    controls.evaluate("part => part.scrollIntoView()")
    notebook.photograph("zoomed")
    room = page.locator(".jp-NotebookPanel .jp-WindowedPanel-outer").bounding_box()
    top, bottom = controls.bounding_box(), line.bounding_box()
    assert room and top and bottom
    assert bottom["y"] + bottom["height"] - top["y"] <= room["height"]
