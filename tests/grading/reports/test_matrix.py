"""The matrix of learners and exercises, and the instructor's pages of answers, from files alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page as BrowserPage
from playwright.sync_api import expect, sync_playwright

from helpers.grading.points.overrides import Override
from helpers.grading.record import Record
from helpers.grading.reports import Alike, Similar, write_reports
from helpers.grading.reports.matrix import Neighbours, matrix_page, review_page
from helpers.grading.reports.player import player_page
from helpers.grading.reports.standing import Course
from helpers.grading.reports.standing import course_of as weighted_course
from helpers.trace.events import Place
from tests.grading.reports.builders import (
    EQUAL,
    a_class,
    case,
    exercise,
    hidden_case,
    record,
    wrong_case,
)
from tests.grading.reports.hostile import TEXTS
from tests.grading.reports.page_tags import Page
from tests.grading.reports.test_browser import BROWSERS, QUIET
from tests.views.builders import ping_pong

SIMILAR = [Similar(("Ada", "Bob"), (Alike("ping_pong", 0.95, 2),))]
CODE = "def ping_pong(rank, world_size, ball, rounds):\n    return '<b>ball</b>'"


def the_class() -> Course:
    cases = (case("seen"), wrong_case("also seen"), hidden_case("passed"), hidden_case("crashed"))
    ada = record("Ada", exercise(outcome="wrong", cases=cases, answer=CODE, flags=("odd traffic",)))
    bob = record(
        "Bob", exercise(answer=CODE.replace("ball", "x")), exercise("token_ring", "not attempted")
    )
    given = Override("Ada", "ping_pong", 7.0, "shown orally", "a tutor", "2026-10-20")
    return weighted_course([ada, bob], "Autumn", (), EQUAL, [given])


def review_of(course: Course, learner: str) -> str:
    (standing,) = [each for each in course.standings if each.learner == learner]
    return Page(review_page(course, standing, Neighbours(course, SIMILAR))).text


def test_a_review_page_shows_code_hidden_cases_overrides_and_similar_answers() -> None:
    text = review_of(the_class(), "Ada")
    assert CODE in text and CODE.replace("ball", "x") in text
    assert "Visible cases: 1 of 2 passed" in text and "Hidden cases: 1 of 2 passed" in text
    assert "7 points set by hand (a tutor, 2026-10-20): shown orally" in text
    assert "Look: odd traffic" in text and "95 % like the answer of Bob" in text
    assert "271828" not in text  # not even here what a hidden case was given
    assert "like the answer of Ada" in review_of(the_class(), "Bob")


def test_code_is_cut_to_a_sane_length() -> None:
    course = weighted_course([record("Ada", exercise(answer="x = 1\n" * 100_000))], "Autumn")
    page = review_page(course, course.standings[0], Neighbours(course, []))
    assert len(page) < 60_000


@pytest.fixture
def page() -> Iterator[BrowserPage]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=QUIET) as chromium,
    ):
        page = chromium.new_page(viewport={"width": 1000, "height": 800})
        page.set_default_timeout(30_000)
        yield page


def written(records: list[Record], out: Path) -> Path:
    write_reports(weighted_course(records, "Autumn", (), EQUAL), out)
    return out


def names(page: BrowserPage) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "#matrix tbody tr:not([hidden]) th", "all => all.map(each => each.textContent)"
    )
    return found


def test_the_matrix_searches_filters_and_sorts(page: BrowserPage, tmp_path: Path) -> None:
    tries = {"Ada": "passed", "Bob": "wrong", "Cleo": "not attempted"}
    records = [record(name, exercise(outcome=outcome)) for name, outcome in tries.items()]
    page.goto((written(records, tmp_path) / "matrix.html").as_uri())
    assert names(page) == ["Ada", "Bob", "Cleo"]
    page.get_by_label("Find a learner").fill("b")
    assert names(page) == ["Bob"] and "1 of 3 learners" in page.inner_text("#status")
    page.get_by_label("Find a learner").fill("")
    page.get_by_label("Show learners with").select_option("an answer not attempted")
    assert names(page) == ["Cleo"]
    page.get_by_label("Show learners with").select_option("anything")
    page.get_by_label("Sort by").select_option("failed answers")
    assert names(page)[0] == "Bob"
    page.get_by_role("button", name="2.1").click()
    assert names(page) == ["Cleo", "Bob", "Ada"]
    page.get_by_role("link", name="✗").click()
    assert page.title() == "Bob: answers" and page.locator("article:target").count() == 1


def test_names_and_titles_in_the_matrix_are_text(page: BrowserPage, tmp_path: Path) -> None:
    records = [record(text, exercise()) for text in TEXTS.values() if "\ud800" not in text]
    page.goto((written(records, tmp_path) / "matrix.html").as_uri())
    assert len(names(page)) == len(records) and page.title() == "Autumn: all answers"
    assert TEXTS["script"] in names(page) and page.locator("#matrix b, #matrix img").count() == 0


def test_the_instructors_pages_are_accessible(page: BrowserPage, tmp_path: Path) -> None:
    out = written(a_class(9), tmp_path)
    review = next((out / "review").glob("ada*"))
    for path in (out / "matrix.html", review, out / "class.html"):
        page.goto(path.as_uri())
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_an_empty_class_has_a_matrix() -> None:
    course = weighted_course([], "Autumn")
    assert b'"learners":[]' in matrix_page(course, Neighbours(course, []))


def a_trace(line: str = "dist.send(x, 1)") -> str:
    trace = ping_pong()
    where = Place("<answer>", 3, line, "cell 3", line)
    events = [replace(event, where=where) for event in trace.events]
    return msgspec.json.encode(replace(trace, events=tuple(events))).decode()


def test_a_run_can_be_played(tmp_path: Path, page: BrowserPage) -> None:
    """From the link on the instructor's page, and nothing that a trace says runs or is fetched."""
    evil = "</script><img src=http://127.0.0.1:9/x onerror=document.title=1>"
    ada = record("Ada", exercise(outcome="wrong", answer=CODE, trace=a_trace(evil)))
    write_reports(weighted_course([ada], "Autumn", (), EQUAL), tmp_path)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    (review,) = (tmp_path / "review").glob("*.html")
    page.goto(review.as_uri())
    page.get_by_role("link", name="Play this run").click()
    page.get_by_role("button", name="Play", exact=True).first.click()
    expect(page.locator(".rr-player .rr-run")).to_be_visible()
    expect(page.locator(".rr-count")).not_to_have_text(re.compile("^0 /"))
    assert page.title() != "1"
    assert all(url.startswith(("file:", "blob:", "data:")) for url in asked), asked


@pytest.mark.parametrize("bad", ["", "{", "[]", '{"world_size": 100000}', "9" * 500_000])
def test_a_trace_that_no_run_has_gives_no_page(bad: str) -> None:
    assert player_page(exercise(trace=bad), "Ada") is None
