"""The contents of a learner's page, and texts that must not be in it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest

from helpers.check_result import Outcome
from helpers.grading.record import Record
from helpers.grading.reports.github import class_summary, github_annotations
from helpers.grading.reports.gradescope import results_json
from helpers.grading.reports.junit import junit
from helpers.grading.reports.outcomes import FAULT_TEXT, Kind, kind_of
from helpers.grading.reports.pages import checked_png, learner_page
from helpers.views.failed_case import START
from tests.grading.reports.builders import (
    DEADLOCK,
    LOOK,
    SECRET_INPUT,
    case,
    course_of,
    exercise,
    fault,
    hidden_case,
    picture,
    record,
    unreadable,
    wrong_case,
)
from tests.grading.reports.page_tags import Page


def page_of(*records: Record, learner: str = "") -> Page:
    course = course_of(records, "Autumn")
    (standing,) = [s for s in course.standings if s.learner == (learner or records[0].learner)]
    return Page(learner_page(course, standing))


def words(page: Page) -> str:
    return " ".join(page.text.split())


def test_shows_points_outcomes_and_starting_point() -> None:
    page = page_of(
        record(
            "Ada",
            exercise("ping_pong"),
            exercise("token_ring", "wrong"),
            exercise("tagged_mail", "deadlocked"),
        )
    )
    text = words(page)
    assert "14 of 30 points" in text
    assert "1 of 3 exercises passed, 1 wrong, 1 deadlocked" in text
    assert "2.1 Ping-pong" in text and "10 of 10" in text and "4 of 10" in text
    assert "In the case 3 ranks, 5 elements" in text
    assert (
        "tensor([2., 2.])" in text
        and "element 0 differs" in text
        and "nothing was returned" in text
    )
    assert "3 messages of 8 bytes, but 2 suffice" in text
    assert f"{START} Rank 1 kept its own x" in text
    assert DEADLOCK in page.text
    assert LOOK.replace("`", "") in text
    # attacks that a sandbox does not stop must not be shown to learners
    assert not any(word in text for word in ("bubblewrap", "It does not stop", "9f86d081884c7d65"))


def test_shows_hidden_cases_only_as_count() -> None:
    hidden_alone = exercise("ping_pong", "wrong", cases=(case(), hidden_case("wrong")))
    text = words(page_of(record("Ada", hidden_alone)))
    assert "0 of 1 hidden cases passed. Which cases have you not tried" in text
    assert "5 ranks, 7 elements" not in text
    assert SECRET_INPUT not in text and "271828" not in text


HOW = sorted({each.value for each in Outcome if kind_of(each.value) is Kind.FAILED})


def test_never_shows_failures_of_hidden_cases() -> None:
    """Otherwise an answer could reveal a hidden case's inputs by crashing or hanging."""
    told = set()
    for one, other in [("wrong", "wrong"), *permutations(HOW, 2)]:
        cases = (case(), hidden_case("passed"), hidden_case(one), hidden_case(other))
        tried = exercise("ping_pong", one, cases=cases, points=3.0)
        class_of_one = course_of([record("Ada", tried)], "Autumn")
        told.add(
            (
                learner_page(class_of_one, class_of_one.standings[0]),
                results_json([record("Ada", tried)]),
                junit(class_of_one),
                class_summary(class_of_one),
                *github_annotations([record("Ada", tried)]),
            )
        )
    ((page, *rest),) = told
    for text in (page, *rest):
        assert b"hidden cases" in (text if isinstance(text, bytes) else text.encode())
    assert b"1 of 3 hidden cases passed" in page and b"failed hidden cases" in page


def test_shows_failures_of_visible_cases() -> None:
    cases = (case(outcome="deadlocked", message=DEADLOCK), hidden_case("crashed"))
    text = words(page_of(record("Ada", exercise("ping_pong", "deadlocked", cases=cases))))
    assert "0 of 1 exercise passed, 1 deadlocked" in text and "crashed" not in text


def test_passed_exercise_folds_its_cases() -> None:
    page = page_of(record("Ada", exercise()))
    text = words(page)
    assert "1 visible case and 1 hidden, all passed" in text
    assert [tag.name for tag in page.tags].count("details") == 1


def test_visible_cases_fold_after_three() -> None:
    cases = (*(case(f"case {n}") for n in range(4)), wrong_case(), hidden_case("wrong"))
    page = page_of(record("Ada", exercise("ping_pong", "wrong", cases=cases)))
    text = words(page)
    assert "hidden case" not in text and "2 more visible cases" in text
    assert text.index("3 ranks, 5 elements") < text.index("case 0") < text.index("2 more visible")


def test_learner_sees_repairs_without_flags() -> None:
    tried = exercise(flags=("looks copied",), notes=("the last of two definitions counts",))
    text = words(page_of(record("Ada", tried, notes=("cell 7 has no source",))))
    assert "looks copied" not in text
    assert "the last of two definitions counts" in text and "cell 7 has no source" in text


def test_reports_grading_fault_without_cost() -> None:
    text = words(page_of(record("Ada", exercise(), fault())))
    assert FAULT_TEXT in text and "10 of 10 points" in text and "SIGKILL" not in text


def test_lists_unreadable_missing_and_further_files() -> None:
    ada = record("Ada", exercise())
    copy = replace(ada, file="Ada/copy.ipynb", exercises=(exercise(outcome="wrong"),))
    other = record("Bob", exercise("tree_broadcast"), notebook="05_collective_algorithms")
    text = words(page_of(copy, ada, other))
    assert (
        "10 of 20 points" in text and "Not handed in" in text and "05_collective_algorithms" in text
    )
    assert "Ada/copy.ipynb does not count: it is a further copy" in text
    text = words(page_of(unreadable("Ada")))
    assert "could not be read" in text and "line 3, column 7: this is not valid JSON" in text


def test_shows_valid_picture_with_size() -> None:
    page = page_of(record("Ada", exercise(picture=picture())))
    (image,) = [dict(tag.attributes) for tag in page.tags if tag.name == "img"]
    assert image["src"] == "data:image/png;base64," + picture()
    assert int(image["width"]) == 660 and int(image["height"]) == 220


def _with_byte(png: bytes, at: int, byte: int) -> bytes:
    return png[:at] + bytes([byte]) + png[at + 1 :]


DAMAGED: dict[str, Callable[[bytes], str | bytes]] = {
    "empty": lambda png: "",
    "no base64": lambda png: "no base64 <script>",
    "SVG": lambda png: b"<svg onload=alert(1)>",
    "only a signature": lambda png: b"\x89PNG\r\n\x1a\n" + bytes(40),
    "more after the end": lambda png: png + b"<script>",
    "cut off": lambda png: png[:-20],
    "13 million pixels wide": lambda png: _with_byte(png, 17, 200),
    "a changed byte": lambda png: _with_byte(png, 60, 0),
    "two pictures": lambda png: picture() + "\n" + picture(),
    "2 MB": lambda png: "A" * 3_000_000,
    "a surrogate": lambda png: "\ud800" + picture(),
}
"""Functions that take the bytes of a PNG, and return a damaged picture: bytes, or their base64 form."""


@pytest.mark.parametrize("kind", DAMAGED)
def test_omits_damaged_pictures(kind: str) -> None:
    damaged = DAMAGED[kind](base64.b64decode(picture()))
    bad = damaged if isinstance(damaged, str) else base64.b64encode(damaged).decode()
    assert checked_png(bad) is None
    page = page_of(record("Ada", exercise(picture=bad)))
    assert not [tag for tag in page.tags if tag.name == "img"]


def test_omits_oversized_picture() -> None:
    assert checked_png(picture(60.0)) is None


def test_page_repeats_no_element_id() -> None:
    page = page_of(record("Ada", exercise(), exercise("token_ring")), unreadable("Ada"))
    identifiers = page.values("id")
    assert len(identifiers) == len(set(identifiers)) == 2
    assert {f"#{each}" for each in identifiers} == set(page.values("href"))
    assert all(re.fullmatch(r"e\d+-\d+", each) for each in identifiers)


def test_never_identifies_failed_hidden_case() -> None:
    """Otherwise an answer could reveal hidden inputs by choosing the cases that it fails."""
    one, other = hidden_case("wrong"), hidden_case("passed")
    first, second = (
        words(page_of(record("Ada", exercise(outcome="wrong", cases=cases))))
        for cases in ((one, other), (other, one))
    )
    assert first == second
