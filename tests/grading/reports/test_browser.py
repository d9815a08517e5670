"""Pages in a real browser run no scripts, and fit screens of every size.

Screenshots are kept in the folder $RR_SHOTS, for inspection.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Playwright, Request, sync_playwright

from helpers.grading.reports import write_reports
from tests.grading.reports.builders import a_class, course_of
from tests.grading.reports.hostile import TEXTS, hostile_record, unreadable_record

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]

ADD_SCRIPT = """() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'owned'";
    document.body.append(script);
    const image = document.createElement("div");
    image.innerHTML = "<img src='data:,' onerror=\\"document.title = 'owned'\\">";
    document.body.append(image);
}"""


def title_in(path: Path) -> str:
    """Return the title in the file, as shown by a browser."""
    found = re.search("<title>(.*?)</title>", path.read_text(encoding="utf-8"), re.DOTALL)
    return " ".join(html.unescape(found[1]).split()) if found else ""


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture
def browser(playwright: Playwright) -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.chromium.launch(executable_path=path, args=QUIET) as chromium:
        yield chromium


@pytest.mark.extended
def test_record_text_runs_and_fetches_nothing(browser: Browser, tmp_path: Path) -> None:
    records = [hostile_record(text) for text in TEXTS.values()]
    records += [unreadable_record(text + "!") for text in TEXTS.values()]
    pages = [
        path
        for path in write_reports(course_of(records, TEXTS["script"]), tmp_path / "out")
        if path.suffix == ".html"
    ]
    assert len(pages) == 2 * len(TEXTS) + 1
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.set_default_timeout(30_000)
    fetched: list[Request] = []
    page.on("request", lambda request: fetched.append(request))
    for path in pages:
        fetched.clear()
        page.goto(path.as_uri())
        page.mouse.move(200, 200)
        title = title_in(path)
        assert page.title() == title != "owned"
        page.evaluate(ADD_SCRIPT)
        page.wait_for_timeout(20)
        assert page.title() == title
        schemes = {request.url.partition(":")[0] for request in fetched}
        assert schemes <= {"file", "data"}
        assert [request.url for request in fetched if request.url.startswith("file:")] == [
            path.as_uri()
        ]
        assert page.evaluate("document.images.length") <= 2
        # the style sheet is allowed by its hash
        assert page.evaluate("getComputedStyle(document.body).maxWidth") in ("864px", "1440px")


@pytest.mark.extended
@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_screen_in_both_schemes(
    browser: Browser, tmp_path: Path, shots: Path | None, width: int, scheme: str
) -> None:
    records = a_class(12)
    written = write_reports(course_of(records, "Real Ranks, autumn"), tmp_path / "out")
    ada = next(path for path in written if path.name.startswith("ada"))
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    for path in (tmp_path / "out" / "class.html", ada):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 400)")
        if shots is not None:
            page.screenshot(path=shots / f"{path.stem}-{width}-{scheme}.png", full_page=True)
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        page.emulate_media(media="screen")
    page.goto((tmp_path / "out" / "class.html").as_uri())
    page.get_by_role("link", name="Ada Lovelace").first.click()
    assert page.title() == "Ada Lovelace: Real Ranks, autumn"
    context.close()


@pytest.mark.extended
def test_pages_are_accessible(browser: Browser, tmp_path: Path) -> None:
    written = write_reports(course_of(a_class(9), "Autumn"), tmp_path / "out")
    ada = next(path for path in written if path.name.startswith("ada"))
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    for path in (tmp_path / "out" / "class.html", ada):
        page.goto(path.as_uri())
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
