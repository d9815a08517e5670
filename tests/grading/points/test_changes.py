"""Changes of grades between two runs, and their reasons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.grading.points.changes import (
    FILE,
    Grades,
    as_json,
    changes_between,
    grades_of,
    read_grades,
)
from helpers.grading.points.overrides import Override
from helpers.grading.points.policy import Policy
from helpers.grading.record import Record
from helpers.grading.reports.class_page import class_page
from helpers.grading.reports.gradebooks import changes_csv
from helpers.grading.reports.standing import course_of
from tests.grading.reports.builders import EQUAL, exercise, record
from tests.grading.reports.page_tags import Page

ADA, BOB = record("Ada", exercise(outcome="wrong")), record("Bob", exercise())


def grades(
    *records: Record, policy: Policy = EQUAL, overrides: tuple[Override, ...] = ()
) -> Grades:
    return Grades(grades_of(course_of(records, "", (), policy, overrides)))


def test_equal_grades_report_no_change() -> None:
    before = grades(ADA, BOB).grades
    assert not list(changes_between(before, before, "now"))
    later = grades(replace(ADA, versions={"course": "2"}), BOB, record("Cleo", exercise())).grades
    assert not list(changes_between(before, later, "now"))


def _with(outcome: str, **given: object) -> Record:
    changed: Record = replace(ADA, exercises=(exercise(outcome=outcome),), **given)  # type: ignore[arg-type]
    return changed


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (
            grades(_with("passed", versions={"course": "2"}), BOB),
            "the checks have changed: wrong before",
        ),
        (grades(_with("passed", sha256="2"), BOB), "another file was handed in"),
        (grades(_with("passed"), BOB), "it was tried again"),
        (grades(BOB), "no longer handed in"),
        (
            grades(ADA, BOB, overrides=(Override("Ada", "ping_pong", 9.0, "oral", "a tutor"),)),
            "set by hand: oral (a tutor)",
        ),
    ],
)
def test_reports_reason_for_each_change(now: Grades, why: str) -> None:
    (change,) = changes_between(grades(ADA, BOB).grades, now.grades, "now")
    assert change.learner == "Ada" and change.before == 4.0 and why in change.why


def test_changed_weight_changes_all_grades() -> None:
    heavier = grades(ADA, BOB, policy=Policy(weight={"ping_pong": 20.0}))
    moved = list(changes_between(grades(ADA, BOB).grades, heavier.grades, "now"))
    assert [(x.learner, x.before, x.after) for x in moved] == [("Ada", 4, 8), ("Bob", 10, 20)]
    assert {x.why for x in moved} == {"its weight was 10, and is now 20"}


def test_rereads_grades_and_ignores_damaged_file(tmp_path: Path) -> None:
    moved = tuple(changes_between(grades(ADA).grades, grades(_with("passed")).grades, "now"))
    kept = Grades(grades(ADA, record("\ud800", exercise())).grades, moved)
    (tmp_path / FILE).write_bytes(as_json(kept))
    assert read_grades(tmp_path) == kept
    for damaged in (b"", b"[]", b"{}", b'{"format": 1, "grades": [1]}', b"\xff", b"[" * 100_000):
        (tmp_path / FILE).write_bytes(damaged)
        assert read_grades(tmp_path) == Grades()
    assert read_grades(tmp_path / "nowhere") == Grades()


def test_class_page_and_table_show_changes() -> None:
    moved = tuple(changes_between(grades(ADA).grades, grades(_with("passed")).grades, "now"))
    page = Page(class_page(course_of([ADA], "", (), EQUAL), changes=moved)).text
    assert "Grades that moved" in page and "it was tried again: wrong before, passed now" in page
    assert 'Ada,ping_pong,4,10,"it was tried again: wrong before' in changes_csv(moved).decode(
        "utf-8-sig"
    )
