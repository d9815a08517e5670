"""Points set by hand override all others; errors name the wrong line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.grading.points.overrides import Override, OverrideError, read_overrides
from helpers.grading.points.policy import DEFAULT_POLICY
from helpers.grading.record import Record
from helpers.grading.reports.class_page import class_page
from helpers.grading.reports.gradebooks import grade_of, gradebook
from helpers.grading.reports.pages import learner_page
from helpers.grading.reports.standing import Course, course_of
from tests.grading.reports.builders import exercise, fault, record, unreadable
from tests.grading.reports.hostile import TEXTS
from tests.grading.reports.page_tags import Page

HEAD = "learner,exercise,points,reason,by,when\n"
GIVEN = Override("Ada", "ping_pong", 7.5, "shown orally", "a tutor", "2026-10-20")


def course(*records: Record, given: Override = GIVEN) -> Course:
    return course_of(records, "Autumn", (), DEFAULT_POLICY, [given])


def test_reads_overrides_in_any_column_order(tmp_path: Path) -> None:
    path = tmp_path / "overrides.csv"
    path.write_text(
        'exercise;learner;points;reason;by;when\r\n\r\n2.1;Ada; 7.5 ;"shown;\norally";;\r\n',
        encoding="utf-8-sig",
    )
    (override,) = read_overrides(path, {"Ada": "Ada"})
    assert override == Override("Ada", "ping_pong", 7.5, "shown;\norally")


WRONG = {
    "learner,points\n": 1,
    HEAD + "Bob,ping_pong,7,because,,\n": 2,
    HEAD + "Ada,ping_pang,7,because,,\n": 2,
    HEAD + 'Ada,token_ring,7,"a\nb",,\n\nAda,ping_pong,much,because,,\n': 5,
    HEAD + "Ada,ping_pong,nan,because,,\n": 2,
    HEAD + "Ada,ping_pong,-1,because,,\n": 2,
    HEAD + "Ada,ping_pong,7,because\n": 2,
    HEAD + "Ada,ping_pong,7,,,\n": 2,
    HEAD + "Ada,ping_pong,7,because,,\nAda,2.1,8,because,,\n": 3,
    HEAD + 'Ada,ping_pong,7,"because,,\n': 2,
}


@pytest.mark.parametrize("text", WRONG)
def test_error_locates_wrong_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "overrides.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OverrideError) as told:
        read_overrides(path, {"Ada": "Ada"})
    assert str(told.value).startswith(f"{path}, line {WRONG[text]}: ")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("outcome", ["wrong", "passed", "not attempted", "deadlocked"])
def test_every_page_and_gradebook_show_override(outcome: str) -> None:
    given = course(record("Ada", exercise("ping_pong", outcome), exercise("token_ring", "wrong")))
    (standing,) = given.standings
    assert standing.exercises[0].points == 7.5 and standing.exercises[0].outcome == outcome
    said = "2.1 Ping-pong: 7.5 points set by hand (a tutor, 2026-10-20): shown orally"
    assert said in Page(learner_page(given, standing)).text
    assert said in Page(class_page(given)).text
    assert said in gradebook(given).decode("utf-8-sig")


def test_override_counts_without_graded_file() -> None:
    alone = record("Bob", exercise("ping_pong"))
    for records in ([fault_of_ada()], [unreadable_of_ada(), alone], [other_of_ada(), alone]):
        given = course(*records)
        standing = next(each for each in given.standings if each.learner == "Ada")
        handed_in = standing.record_of("02_blocking_p2p")
        assert handed_in is not None and grade_of(handed_in) == 7.5, records
        assert "7.5" in Page(learner_page(given, standing)).text


def fault_of_ada() -> Record:
    return record("Ada", fault("ping_pong"))


def unreadable_of_ada() -> Record:
    return replace(unreadable("Ada"), file="02_blocking_p2p.ipynb")


def other_of_ada() -> Record:
    return record("Ada", exercise("count_votes"), notebook="00_start_here", file="00.ipynb")


@pytest.mark.parametrize("name", TEXTS)
def test_shows_override_reason_as_text(name: str) -> None:
    text = TEXTS[name]
    given, plain = (
        course(record("Ada", exercise()), given=Override("Ada", "ping_pong", 1.0, said, said, said))
        for said in (text, "word")
    )
    for page in (class_page, lambda each: learner_page(each, each.standings[0])):
        assert Page(page(given)).shape == Page(page(plain)).shape
