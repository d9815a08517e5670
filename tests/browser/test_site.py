"""The course as static pages: links lead from page to page, and a player plays, without a server."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Playwright, expect

from helpers.course.notebook_file import read_notebook
from helpers.course.paths import paths
from helpers.course.site import build_site, describe
from helpers.course.workspace import find_workspace
from tests.browser.conftest import BROWSERS, QUIET


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    build_site(find_workspace().solutions, out, ("00", "02"), run=False)
    return out


@pytest.fixture
def page(playwright: Playwright) -> Iterator[Page]:
    """Open a browser for files without a network, so links to fonts and formulas elsewhere fail."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium:
        yield chromium.new_page()


def test_front_page_plays_first_run(pages: Path, page: Page) -> None:
    page.goto((pages / "index.html").as_uri())
    page.get_by_role("button", name="Play").first.click()
    expect(page.locator(".rr-count").first).to_have_text(re.compile(r"^[1-5] / "))


@pytest.mark.extended
def test_pages_have_titles_and_preview_images(pages: Path, page: Page) -> None:
    expected = {
        "02_blocking_p2p.html": "02 · Blocking send and receive · Real Ranks",
        "index.html": "Real Ranks: a course in distributed PyTorch",
    }
    for name, title in expected.items():
        page.goto((pages / name).as_uri())
        assert page.title() == title
        assert page.locator("meta[property='og:title']").get_attribute("content") == title
        described = page.locator("meta[name='description']").get_attribute("content")
        assert described and described.endswith((".", "?"))
        picture = page.locator("meta[property='og:image']").get_attribute("content")
        assert picture and (pages / picture).is_file()


@pytest.mark.extended
def test_published_page_contains_its_address(tmp_path: Path) -> None:
    told: list[Path] = []
    address = "https://example.org/course"
    solutions = find_workspace().solutions
    build_site(solutions, tmp_path, ("02",), run=False, address=address, on_page=told.append)
    text = (tmp_path / "02_blocking_p2p.html").read_text(encoding="utf-8")
    assert f'property="og:url" content="{address}/02_blocking_p2p.html"' in text
    assert f'property="og:image" content="{address}/deadlock.webp"' in text
    assert [path.name for path in told] == ["02_blocking_p2p.html", "index.html"]


@pytest.mark.extended
def test_outputs_below_stubs_mention_reference_solution(pages: Path, page: Page) -> None:
    page.goto((pages / "02_blocking_p2p.html").as_uri())
    passed = page.locator(".jp-Cell", has_text="Exercise 2.1: Ping-pong (").filter(
        has_text="passed"
    )
    expect(passed.first).to_contain_text("With the reference solution, which is not shown here:")
    other = page.locator(".jp-Cell", has_text="launch(one_message, 2)").first
    expect(other).not_to_contain_text("reference solution")


def test_every_notebook_has_description() -> None:
    for path in sorted(find_workspace().solutions.glob("*.ipynb")):
        words = describe(read_notebook(path))
        assert 40 < len(words) < 300 and not re.search(r"[`*:]$|\*\*|```|\]\(", words), path.name


@pytest.mark.extended
def test_links_connect_front_page_and_notebooks(pages: Path, page: Page) -> None:
    page.goto((pages / "index.html").as_uri())
    page.get_by_role("link", name="02 ·").click()
    assert page.url.endswith("02_blocking_p2p.html")
    first = pages / "00_start_here.html"
    assert 'href="01_process_groups.html"' in first.read_text(encoding="utf-8")
    assert ".ipynb#" not in first.read_text(encoding="utf-8")


@pytest.mark.extended
def test_landing_page_plays_failure_without_installation(tmp_path: Path, page: Page) -> None:
    # use a separate process, because a client of a kernel keeps descriptors open
    program = (
        "import sys; from pathlib import Path; from helpers.course.site import build_site; "
        "build_site(Path(sys.argv[1]), Path(sys.argv[2]), ('none',))"
    )
    command = [sys.executable, "-c", program, str(find_workspace().solutions), str(tmp_path)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    page.goto((tmp_path / "index.html").as_uri())
    for title in ("As it is", "Rank 1 leaves out its send"):
        page.get_by_text(title, exact=True).click()
        shown = page.locator(".shown:visible")
        assert shown.count() == 1
        shown.get_by_role("button", name="Play").first.click()
        shown.get_by_text("rank 0").first.wait_for()
    shown.get_by_text("waits for").first.wait_for()
    page.get_by_text("A pipeline, with sliders").click()
    assert page.locator(".shown:visible").locator("input, select").count() > 1
    assert all(path.goal in page.locator(".paths").inner_text() for path in paths().values())


def test_published_page_contains_no_solution(pages: Path) -> None:
    text = (pages / "02_blocking_p2p.html").read_text(encoding="utf-8")
    assert "BEGIN SOLUTION" not in text and "Exercise 2.1: Ping-pong" in text


@pytest.mark.extended
def test_front_page_is_accessible(pages: Path, page: Page) -> None:
    page.goto((pages / "index.html").as_uri())
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
