"""The home page in real JupyterLab follows the progress file; without the server it stays unchanged."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Page, Playwright, expect

from helpers.course.home import HOME_FILE, write_home
from helpers.course.progress import read_progress, record_quiz, record_score
from tests.browser.conftest import BROWSERS, QUIET
from tests.browser.lab import Lab
from tests.browser.notebook_page import NotebookPage

WITHOUT_A_SIGNATURE = 403
OVER = """table => {
    // The map follows the work, so this table may just have been replaced.
    const output = table.closest(".jp-RenderedHTML") ?? document.querySelector(".jp-RenderedHTML:has(table)");
    return output.scrollWidth - output.clientWidth;
}"""


@pytest.fixture
def work(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the home page next to the notebook, signed for this lab, with the progress of its kernels."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "home" / "data"))
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(work / ".progress.json"))
    write_home(work)
    return work


@pytest.mark.extended
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("work")
def test_map_shows_new_progress(
    page: Page, errors: list[str], lab: Lab, shots: Path | None
) -> None:
    notebook = NotebookPage(page, shots)
    page.set_viewport_size({"width": 1000, "height": 900})
    page.goto(lab.url(f"lab/tree/{HOME_FILE}"))
    page.locator(".jp-OutputArea summary").click(timeout=60_000)
    table = page.locator(".jp-OutputArea table")
    row = table.locator("tr", has=page.get_by_role("link", name="02 · Blocking send and receive"))
    expect(row).to_contain_text("0 of 3", timeout=60_000)
    assert table.evaluate(OVER) == 0
    record_score("ping_pong", "passed", 10, 10)
    expect(row).to_contain_text("1 of 3", timeout=20_000)
    expect(page.locator(".jp-OutputArea")).to_contain_text("● 02")
    # The links of a newer map open notebooks in JupyterLab's window, and the keyboard focus stays
    answered = row.get_by_role("link", name="recv-first")
    answered.focus()
    record_quiz("recv-first", 2, True)
    expect(answered).to_have_attribute("aria-label", "recv-first: answered", timeout=20_000)
    expect(answered).to_be_focused()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.use_theme(theme)
        notebook.photograph(f"home-{theme[-5:].strip().lower()}")
    row.get_by_role("link", name="02 · ").click()
    expect(page.get_by_role("tab", name="02_blocking_p2p.ipynb")).to_be_visible()
    assert len(page.context.pages) == 1 and page.url.endswith("/lab/tree/02_blocking_p2p.ipynb")
    assert not errors


@pytest.mark.extended
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("work")
def test_button_chooses_path(page: Page, errors: list[str], lab: Lab) -> None:
    page.set_viewport_size({"width": 640, "height": 450})
    page.goto(lab.url(f"lab/tree/{HOME_FILE}"))
    cards = page.locator(".home-map .paths li")
    everything = cards.filter(has_text="Everything")
    everything.get_by_role("button", name="Follow this path").click(timeout=60_000)
    expect(page.locator(".home-map")).to_contain_text("on the path Everything", timeout=20_000)
    expect(everything.get_by_role("button")).to_have_count(0)
    assert read_progress().path == "everything"
    # on half of a narrow page, next to the list of files
    assert page.locator(".home-map .paths").evaluate(OVER) == 0
    assert not errors


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("work")
def test_map_requires_sign_in(lab: Lab) -> None:
    with urllib.request.urlopen(lab.url("real-ranks/map"), timeout=20.0) as answer:
        assert answer.headers["Content-Type"].startswith("text/html")
        assert b"02_blocking_p2p.ipynb" in answer.read()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(lab.url("real-ranks/map").partition("?")[0], timeout=20.0)
    assert refused.value.code == WITHOUT_A_SIGNATURE
    refused.value.close()


@pytest.mark.extended
@pytest.mark.timeout(120)
def test_exported_map_makes_no_requests(playwright: Playwright, work: Path, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    notebook = nbformat.read(work / HOME_FILE, as_version=4)  # type: ignore[no-untyped-call]
    body, _ = HTMLExporter(require_js_url="", mathjax_url="").from_notebook_node(notebook)  # type: ignore[no-untyped-call]
    path, said, asked = tmp_path / "home.html", list[str](), list[str]()
    path.write_text(str(body), encoding="utf-8")
    with playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium:
        page = chromium.new_page(viewport={"width": 1000, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        # the module of the map has run: it removes its mark from its element
        expect(page.locator("[class^='rr-']")).to_have_count(0)
        page.wait_for_timeout(4000)  # longer than the interval between two requests to the server
        page.locator("summary").click()
        expect(page.locator("table")).to_contain_text("02 · Blocking send and receive")
    assert not said
    assert not [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]
