"""Several files of one learner are together worth as much as their best parts."""

from __future__ import annotations

from datetime import datetime

import pytest

from helpers.grading.points.policy import LatePolicy, Policy
from helpers.grading.record import Record
from helpers.grading.reports.class_page import class_page
from helpers.grading.reports.copies import is_course_solution, split_by_notebook
from helpers.grading.reports.gradebooks import gradebook
from helpers.grading.reports.pages import learner_page
from helpers.grading.reports.standing import course_of
from tests.grading.reports.builders import EQUAL, exercise, fault, record
from tests.grading.reports.page_tags import Page

BOTH = ("ping_pong", "token_ring")
DAY = 86400.0


def part(file: str, **outcomes: str) -> Record:
    tries = [exercise(name, outcomes.get(name, "not attempted")) for name in BOTH]
    return record("ada", *tries, file=f"ada/{file}.ipynb")


def points(*records: Record, late: dict[str, int] | None = None, policy: Policy = EQUAL) -> float:
    due = datetime.fromisoformat("2026-10-10T12:00:00+00:00").timestamp()
    times = {
        ("ada", f"ada/{name}.ipynb"): due + days * DAY - 60 for name, days in (late or {}).items()
    }
    (standing,) = course_of(records, "", (), policy, (), times).standings
    return standing.points


def test_combines_parts_of_same_notebook() -> None:
    first, second = (
        part("one", ping_pong="passed"),
        part("two", token_ring="passed", ping_pong="wrong"),
    )
    assert points(first) == 10 and points(second) == 14
    assert points(first, second) == points(second, first) == 20
    course = course_of([first, second], "Autumn", (), EQUAL)
    (standing,) = course.standings
    assert not standing.spare
    said = "2 files count: in each exercise, the one with the better answer"
    for page in (class_page(course), learner_page(course, standing)):
        assert said in Page(page).text
    assert said in gradebook(course).decode("utf-8-sig")


def test_attempt_outranks_stub_and_fault() -> None:
    tried, blank = part("a", ping_pong="wrong"), part("b", token_ring="passed")
    (standing,) = course_of([tried, blank], "", (), EQUAL).standings
    assert [each.outcome for each in standing.exercises] == ["wrong", "passed"]
    faulty = record("ada", exercise("ping_pong"), fault("token_ring"), file="ada/c.ipynb")
    assert points(faulty, part("d", ping_pong="wrong")) == 10
    assert points(faulty, part("d", token_ring="passed")) == 20


@pytest.mark.parametrize(
    ("days", "expected"),
    [(0, 20.0), (1, 18.0), (4, 12.0), (5, 10.0), (9, 10.0)],
)
def test_late_copy_must_outweigh_its_penalty(days: int, expected: float) -> None:
    due = datetime.fromisoformat("2026-10-10T12:00:00+00:00")
    rules = {"deadlines": {"02_blocking_p2p": due}, "late": LatePolicy(per_day=0.1)}
    policy = Policy(weights="points", further="counts", **rules)  # type: ignore[arg-type]
    early, later = part("one", ping_pong="passed"), part("two", token_ring="passed")
    assert points(early, later, late={"one": 0, "two": days}, policy=policy) == expected


def test_file_counts_for_both_its_notebooks() -> None:
    tries = (exercise("ping_pong"), exercise("count_votes", "wrong"), exercise("my_slice"))
    both = record("ada", *tries, notebook="00_start_here", file="ada/all.ipynb")
    assert [each.notebook for each in split_by_notebook(both)] == [
        "02_blocking_p2p",
        "00_start_here",
    ]
    (standing,) = course_of([both], "", (), EQUAL).standings
    assert {each.notebook: len(each.exercises) for each in standing.records} == {
        "00_start_here": 2,
        "02_blocking_p2p": 1,
    }
    assert "contains 2 notebooks" in gradebook(course_of([both], "", (), EQUAL)).decode("utf-8-sig")


SOLUTIONS = {
    "ping_pong": "def ping_pong(rank):\n    # the ball\n    return rank\n",
    "token_ring": "def token_ring(rank):\n    return rank + 1\n",
}


def answered(**answers: str) -> Record:
    tries = [exercise(name, answer=answers.get(name, "")) for name in BOTH]
    return record("ada", *tries, file="ada/solutions/02_blocking_p2p.ipynb")


@pytest.mark.parametrize(
    ("answers", "own"),
    [
        (SOLUTIONS, True),
        ({name: text.replace("\n", "  \n\n") for name, text in SOLUTIONS.items()}, True),
        ({**SOLUTIONS, "ping_pong": "def ping_pong(rank):\n    return rank\n"}, False),
        ({"token_ring": SOLUTIONS["token_ring"]}, False),
        ({}, False),
    ],
)
def test_recognizes_course_solutions_by_text(answers: dict[str, str], own: bool) -> None:
    assert is_course_solution(answered(**answers), SOLUTIONS) is own
    assert not is_course_solution(answered(**answers), {})


def test_course_solutions_earn_nothing() -> None:
    mine = record("ada", exercise("ping_pong", "wrong"), exercise("token_ring", "not attempted"))
    course = course_of([mine, answered(**SOLUTIONS)], "", (), EQUAL, references=SOLUTIONS)
    (standing,) = course.standings
    assert standing.points == 4 and [each.file for each in standing.own] == [answered().file]
    assert "the course's own file" in Page(class_page(course)).text
    assert "are the course's own solutions, word for word" in gradebook(course).decode("utf-8-sig")
    (alone,) = course_of([answered(**SOLUTIONS)], "", (), EQUAL, references=SOLUTIONS).standings
    assert alone.points == 0 and not alone.records


def test_blank_notebooks_change_no_share() -> None:
    """A notebook counts for the whole class only if a quarter of the learners have attempted it."""
    work = [record(name, exercise(), file=f"{name}/02.ipynb") for name in ("ada", "bob", "cy")]
    blank = [
        record(
            name,
            exercise("count_votes", "not attempted"),
            notebook="00_start_here",
            file=f"{name}/00.ipynb",
        )
        for name in ("ada", "bob")
    ]
    assert list(course_of([*work, *blank], "", (), EQUAL).points_by_notebook) == ["02_blocking_p2p"]
    assert list(course_of(blank, "", (), EQUAL).points_by_notebook) == ["00_start_here"]


def test_reports_rarely_submitted_counting_notebook() -> None:
    work = [record(f"p{n}", exercise(), file=f"p{n}/02.ipynb") for n in range(6)]
    few = [
        record(f"p{n}", exercise("count_votes"), notebook="00_start_here", file=f"p{n}/00.ipynb")
        for n in range(3)
    ]
    assert course_of([*work, *few[:2]], "", (), EQUAL).rare == ("00_start_here",)
    assert course_of([*work, *few], "", (), EQUAL).rare == ()
    assert course_of([*work, *few[:2]], "", ("00_start_here", "02_blocking_p2p"), EQUAL).rare == ()
