"""Fixtures for browser tests: a driver, a JupyterLab on the learner's folder, a page, and pictures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Playwright, sync_playwright

from helpers.course.notebook_file import read_notebook, write_notebook
from helpers.course.workspace import find_workspace
from tests.browser.lab import Lab, running_lab
from tests.browser.notebook_page import HEIGHT, WIDTH

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture
def name() -> str:
    """Return the name of the notebook in the folder. A test may override it."""
    return "02_blocking_p2p.ipynb"


@pytest.fixture
def work(tmp_path: Path, name: str) -> Path:
    """Make a learner's folder with the notebook, solved, and without its outputs."""
    notebook = read_notebook(find_workspace().solutions / name)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    folder = tmp_path / "work"
    folder.mkdir()
    write_notebook(folder / name, notebook)
    return folder


@pytest.fixture
def lab(work: Path, tmp_path: Path) -> Iterator[Lab]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    with running_lab(work, home) as lab:
        yield lab


@pytest.fixture
def page(playwright: Playwright, lab: Lab) -> Iterator[Page]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium:
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(30_000)
        yield page


@pytest.fixture
def errors(page: Page) -> list[str]:
    """Return the errors that the page's console and its scripts have reported so far."""
    said: list[str] = []
    page.on("console", lambda told: said.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return said
