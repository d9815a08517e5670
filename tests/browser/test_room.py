"""Test the board in a real browser: live, in both themes, on a phone and projected, and accessible by axe."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Playwright, expect

from helpers.checks.headings import headings
from helpers.checks.mistakes import known_mistakes
from helpers.room.board_messages import (
    CheckEvent,
    Event,
    EventBatch,
    HandEvent,
    JoinReply,
    JoinRequest,
)
from helpers.room.outbox import post
from helpers.views.failed_case import START
from tests.browser.conftest import BROWSERS, QUIET
from tests.room.conftest import Served, serving

HOSTILE = '<img src=x onerror="document.title=1">'
MISTAKE = known_mistakes(headings()["ping_pong"])[0]
OUTSIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def served(tmp_path: Path, forking_python: str) -> Iterator[Served]:
    with serving(tmp_path / "room.sqlite3", forking_python) as room:
        yield room


@pytest.fixture
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium:
        yield chromium


def check_event(exercise: str, outcome: str, mistake: str = "", minutes: float = 0) -> CheckEvent:
    return CheckEvent(secrets.token_hex(16), exercise, outcome, mistake, minutes)


def hand(exercise: str = "", code: str = "") -> HandEvent:
    return HandEvent(secrets.token_hex(16), True, exercise, code)


def send(room: Served, learner: str, *events: Event) -> None:
    post(room.url, "api/events", EventBatch([*events]), learner)


def class_of(room: Served, *names: str) -> list[str]:
    """Join as learners; return their tokens."""
    return [
        post(room.url, "api/join", JoinRequest(n, room.code), "", JoinReply).token for n in names
    ]


def axe(page: Page) -> None:
    found = Axe().run(page).response
    assert not found["violations"], found["violations"]
    assert found["passes"]


@pytest.mark.timeout(180)
def test_board_shows_class_live(chromium: Browser, served: Served, shots: Path | None) -> None:
    names = [HOSTILE, *(f"Learner {number:02}" for number in range(1, 13))]
    learners = class_of(served, *names)
    for learner in learners[:7]:
        send(served, learner, check_event("token_ring", "passed"))
        for minutes in (12, 1):
            made = check_event("ping_pong", MISTAKE.outcome.value, MISTAKE.title, minutes)
            send(served, learner, made)
    send(served, learners[0], hand("ping_pong", f"def ping_pong(): ...  # {HOSTILE}"))
    errors = list[str]()
    page = chromium.new_page(viewport={"width": 1200, "height": 900})
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(served.enter)
    expect(page.locator("#state")).to_have_text(
        "13 learners joined. 1 hand up, 7 stuck for long.", timeout=20_000
    )
    row = page.locator("#grid tbody tr", has=page.get_by_role("rowheader", name="Learner 06"))
    expect(page.locator("#grid tbody tr")).to_have_count(13)
    expect(row.locator("td").nth(0)).to_have_text(f"2× {MISTAKE.outcome.value}")
    expect(page.locator("#mistakes")).to_contain_text("7 of 13 make this mistake now")
    expect(page.locator("#hands")).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 0 and page.title() == "Board · Real Ranks"
    # live: the next check changes its cell and the counts
    for learner in learners[:7]:
        send(served, learner, check_event("ping_pong", "passed"))
    expect(row.locator("td").nth(0)).to_have_text("✓ 3×", timeout=10_000)
    expect(page.locator("#mistakes")).to_be_hidden()
    send(served, learners[9], check_event("ping_pong", MISTAKE.outcome.value, MISTAKE.title))
    expect(page.locator("#mistakes")).to_contain_text("1 of 13 makes this", timeout=10_000)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        axe(page)
        photograph(page, shots, f"board-{theme}")
    page.get_by_text("The code that was sent with it").click()
    expect(page.locator("#hands pre")).to_contain_text(HOSTILE)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate(OUTSIDE) == 0
    axe(page)
    photograph(page, shots, "board-phone")
    page.get_by_role("button", name="Take down the hand").click()
    expect(page.locator("#hands")).to_be_hidden(timeout=10_000)
    # a removed learner disappears from the page
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove Learner 12").click()
    expect(page.locator("#grid tbody tr")).to_have_count(12, timeout=10_000)
    code = page.locator("header code").inner_text()
    page.get_by_role("button", name="New code").click()
    expect(page.locator("header code")).not_to_have_text(code, timeout=10_000)
    # on the projected page, no name is shown or was sent
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_role("link", name="Project this").click()
    expect(page.locator("#bars")).to_contain_text("7 of 12 passed, 1 tried", timeout=10_000)
    # the sentence would give the answer away, so it is shown only when the teacher asks for it
    sentence = page.locator("#mistakes p").first
    expect(page.locator("#mistakes")).to_contain_text("1 of 12 makes the same mistake now")
    expect(sentence).to_be_hidden()
    page.get_by_text("Show the mistake").first.click()
    expect(sentence).to_be_visible()
    assert "Learner" not in page.content() and HOSTILE not in page.locator("body").inner_text()
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        axe(page)
        photograph(page, shots, f"board-projected-{theme}")
    page.goto(served.url)
    expect(page.locator("main")).to_contain_text("Your code stays here")
    axe(page)
    assert not errors
    page.goto(f"{served.url}/board")
    expect(page.locator("#state")).to_contain_text("12 learners joined", timeout=10_000)
    served.kill()
    expect(page.locator("#state")).to_contain_text("does not answer", timeout=20_000)


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_board_replays_mistake(chromium: Browser, served: Served, shots: Path | None) -> None:
    (learner,) = class_of(served, "Ana")
    send(served, learner, check_event("ping_pong", MISTAKE.outcome.value, MISTAKE.title))
    errors = list[str]()
    page = chromium.new_page(viewport={"width": 1200, "height": 900})
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(served.enter)
    page.get_by_role("button", name="Play the mistake").click(timeout=20_000)
    inner = page.frame_locator("iframe")
    expect(inner.locator("body")).to_contain_text(START, timeout=90_000)
    expect(inner.locator(".rr-player")).to_be_visible(timeout=20_000)
    photograph(page, shots, "board-mistake")
    axe(page)
    # the page's script runs in a separate origin, so it cannot read the board
    assert page.locator("iframe").evaluate("frame => frame.contentDocument") is None
    page.get_by_role("button", name="Close").click()
    expect(page.locator("dialog")).to_be_hidden()
    assert not errors


def photograph(page: Page, shots: Path | None, name: str) -> None:
    if shots is not None:
        page.screenshot(path=shots / f"{name}.png")
