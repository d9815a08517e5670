"""Players in the page that nbconvert makes of a notebook: no kernel, no server, two in one page."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbconvert import HTMLExporter
from playwright.sync_api import Playwright, expect

from helpers.views.timeline import timeline
from tests.browser.conftest import BROWSERS, QUIET
from tests.views.builders import ping_pong, ring

WIDE = "run => run.getBoundingClientRect().width"


def exported(theme: str) -> str:
    """Make the page of a notebook with two cells that have each shown a run."""
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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_two_runs_play_each_by_itself(
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
        first.get_by_role("button", name="Play the run").click()
        expect(first.locator(".rr-count")).to_have_text("2 / 12", timeout=20_000)
        page.keyboard.press(" ")
        expect(first.get_by_role("button", name="Play", exact=True)).to_be_visible()
        expect(first.locator(".rr-said")).to_have_text(re.compile(r"^Rank \d (calls|is done)"))
        expect(second.locator(".rr-said")).to_have_text("Before the first event.")
        second.focus()
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
