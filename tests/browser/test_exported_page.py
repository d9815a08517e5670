"""Test two players in the page that nbconvert makes of a notebook, without a kernel or a server."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbconvert import HTMLExporter
from playwright.sync_api import Playwright, expect

from helpers.course.quizzes import predict
from helpers.course.workspace import set_up_jupyter
from helpers.views.live import WIDGET_VIEW
from helpers.views.timeline import timeline
from tests.browser.conftest import BROWSERS, QUIET
from tests.views.builders import ping_pong, ring

WIDE = "run => run.getBoundingClientRect().width"


def exported(theme: str) -> str:
    """Export the page of a notebook with two cells, each of which has shown a run."""
    notebook = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    for title, trace in (("back and <forth>", ping_pong()), ("around", ring(4, 2))):
        live = timeline(trace, title=title).live
        assert live is not None
        data = {"text/html": live(), "text/plain": title}
        output = nbformat.v4.new_output("execute_result", data=data)  # type: ignore[no-untyped-call]
        cell = nbformat.v4.new_code_cell("timeline(run)", outputs=[output])  # type: ignore[no-untyped-call]
        notebook.cells.append(cell)
    body, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)  # type: ignore[no-untyped-call]
    return str(body)


@pytest.mark.extended
@pytest.mark.timeout(120)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_two_players_run_independently(
    playwright: Playwright, tmp_path: Path, theme: str, shots: Path | None
) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    path, errors = tmp_path / "page.html", list[str]()
    path.write_text(exported(theme), encoding="utf-8")
    with playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium:
        page = chromium.new_page(viewport={"width": 1000, "height": 900}, reduced_motion="reduce")
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        first, second = (page.locator(".rr-player").nth(n) for n in (0, 1))
        expect(first).to_contain_text("back and <forth>")
        first.get_by_role("button", name="Play", exact=True).click()
        expect(first.locator(".rr-count")).to_have_text("2 / 12", timeout=20_000)
        page.keyboard.press(" ")
        expect(first.get_by_role("button", name="Play", exact=True)).to_be_visible()
        expect(first.locator(".rr-said")).to_have_text(re.compile(r"^Rank \d (calls|is done)"))
        expect(second.locator(".rr-count")).to_have_text("40 / 40")
        second.focus()
        page.keyboard.press("Home")
        expect(second.locator(".rr-said")).to_have_text("Before the first event.")
        page.keyboard.press("End")
        expect(second.locator(".rr-count")).to_have_text("40 / 40")
        wide = [part.locator(".rr-run").evaluate(WIDE) for part in (first, second)]
        second.get_by_label("Zoom").select_option("2")
        assert wide[0] == wide[1] == second.locator(".rr-run").evaluate(WIDE) / 2
        found = Axe().run(page, context={"include": [[".rr-page"]]}).response
        assert not found["violations"] and found["passes"]
        if shots is not None:
            page.screenshot(path=shots / f"exported-{theme}.png", full_page=True)
    assert not errors


PRINTED = """page => [...page.querySelectorAll(".rr-page")].map(part => {
    const seen = (name) => [...part.shadowRoot.querySelectorAll(name)].some(each => each.clientWidth > 0);
    return [seen(".rr-still img"), seen("button"), seen(".rr-stage")];
})"""


@pytest.mark.extended
@pytest.mark.timeout(120)
def test_printed_run_shows_finished_picture(playwright: Playwright, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    path = tmp_path / "page.html"
    path.write_text(exported("light"), encoding="utf-8")
    with playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium:
        page = chromium.new_page(viewport={"width": 700, "height": 900})
        page.goto(path.as_uri())
        expect(page.locator(".rr-player")).to_have_count(2, timeout=20_000)
        assert page.locator("body").evaluate(PRINTED) == [[False, True, True]] * 2
        page.emulate_media(media="print")
        assert page.locator("body").evaluate(PRINTED) == [[True, False, False]] * 2
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_exported_page_keeps_quizzes_and_hints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the command itself, because the course writes the command's settings into its environment."""
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "none"))
    set_up_jupyter()
    view = {"model_id": "0" * 32, "version_major": 2, "version_minor": 0}
    output = nbformat.v4.new_output(  # type: ignore[no-untyped-call]
        "execute_result",
        data={"text/plain": predict("recv-first").__repr__(), WIDGET_VIEW: view},
    )
    cell = nbformat.v4.new_code_cell('predict("recv-first")', outputs=[output])  # type: ignore[no-untyped-call]
    state = {view["model_id"]: {"model_name": "VBoxModel", "model_module": "x", "state": {}}}
    notebook = nbformat.v4.new_notebook(  # type: ignore[no-untyped-call]
        cells=[cell],
        metadata={"widgets": {"application/vnd.jupyter.widget-state+json": {"state": state}}},
    )
    nbformat.write(notebook, tmp_path / "quiz.ipynb")
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "quiz.ipynb"],
        cwd=tmp_path,
        check=True,
        timeout=100,
        capture_output=True,
    )
    page = (tmp_path / "quiz.html").read_text(encoding="utf-8")
    assert "Predict, then run:" in page and "0" * 32 not in page
