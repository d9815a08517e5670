"""Test notebook 02 in Jupyter Notebook 7 (`jupyter notebook`): checks, pictures, the player."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from helpers.course.notebook_file import read_notebook, write_notebook
from tests.browser.lab import Lab, running_lab
from tests.browser.notebook_page import NotebookPage

RUN_ALL_S = 200.0


@pytest.fixture
def lab(work: Path, tmp_path: Path) -> Iterator[Lab]:
    home = tmp_path / "home"
    home.mkdir()
    with running_lab(work, home, "notebook") as lab:
        yield lab


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_notebook_runs_checks_and_players(
    page: Page, errors: list[str], lab: Lab, work: Path, name: str, shots: Path | None
) -> None:
    cells = [c for c in read_notebook(work / name)["cells"] if c["cell_type"] == "code"]
    title = read_notebook(work / name)["cells"][:1]
    write_notebook(work / "title.ipynb", read_notebook(work / name) | {"cells": title})
    page.goto(lab.url("notebooks/title.ipynb"))
    expect(page.locator(".jp-MarkdownCell img")).to_be_visible(timeout=60_000)
    # Notebook 7.6 itself fails to read a setting for every file that it opens
    its_own = set(errors)
    page.goto(lab.url(f"notebooks/{name}"))
    notebook = NotebookPage(page, shots)
    expect(notebook.code_cells).to_have_count(len(cells), timeout=60_000)
    notebook.run_all()
    notebook.wait_until_all_have_run(RUN_ALL_S)
    expect(page.locator("[data-mime-type*='error']")).to_have_count(0)
    passed = notebook.output("result = check(ping_pong)")
    expect(passed).to_contain_text("passed")
    player = notebook.output("timeline(run)").locator(".rr-player").first
    for button in ("To the beginning", "One step on"):
        player.get_by_role("button", name=button).click()
    expect(player.locator(".rr-said")).to_have_text(re.compile(r"^Rank \d calls (send|recv)"))
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.use_theme(theme)
        notebook.photograph(f"notebook-7-{theme[-5:].strip().lower()}", player)
        notebook.photograph_whole(f"notebook-7-{theme[-5:].strip().lower()}-whole")
    assert not set(errors) - its_own, errors[:5]
