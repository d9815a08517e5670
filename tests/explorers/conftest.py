"""A browser without a server, because explorers need none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Playwright, sync_playwright

from tests.browser.conftest import BROWSERS, QUIET


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture
def page(playwright: Playwright) -> Iterator[Page]:
    """Open an empty page, 1000 pixels wide. An error reported by the page fails the test."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium:
        page = chromium.new_page(viewport={"width": 1000, "height": 900})
        page.set_default_timeout(20_000)
        said: list[str] = []
        page.on("console", lambda told: said.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        yield page
        assert not said, said[:5]
