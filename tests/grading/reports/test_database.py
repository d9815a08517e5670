"""The class as an SQLite file."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from helpers.course.workspace import find_workspace
from helpers.grading.points.changes import Change
from helpers.grading.points.overrides import Override
from helpers.grading.reports.database import database
from helpers.grading.reports.standing import course_of as weighted_course
from tests.grading.reports.builders import EQUAL, a_class, course_of, exercise, fault, record
from tests.grading.reports.hostile import TEXTS, hostile_record, unreadable_record


def query_rows(data: bytes, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.deserialize(data)
        return opened.execute(query).fetchall()


def test_database_stores_checked_and_counted_points() -> None:
    given = Override("Ada", "ping_pong", 7.0, "shown orally", "a tutor")
    ada = record("Ada", exercise(outcome="wrong", answer="def ping_pong(): ..."))
    moved = Change("2026-10-20", "Ada", "ping_pong", 4.0, 7.0, "set by hand")
    data = database(weighted_course([ada], "Autumn", (), EQUAL, [given]), [moved])
    query = "select share, points, set_by_hand, reason, answer from exercises"
    assert query_rows(data, query) == [(0.4, 7.0, 7.0, "shown orally", "def ping_pong(): ...")]
    assert query_rows(data, "select points, out_of from learners") == [(7.0, 10.0)]
    assert query_rows(data, "select before, after, why from changes") == [(4.0, 7.0, "set by hand")]
    assert "271828" not in str(query_rows(data, "select * from cases"))


def test_database_points_match_gradebook() -> None:
    course = course_of(a_class(9), "Autumn")
    found = dict(query_rows(database(course, []), "select learner, points from learners"))
    assert found == {each.learner: each.points for each in course.standings}


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_are_stored_as_values(name: str) -> None:
    text = TEXTS[name]
    data = database(course_of([hostile_record(text), unreadable_record(text + "!")], text), [])
    assert query_rows(data, "select count(*) from exercises") == [(6,)]


def test_documented_queries_return_matrix_and_cases() -> None:
    text = (find_workspace().root / "docs" / "json.md").read_text(encoding="utf-8")
    matrix, answer = re.findall("```sql\n(.*?)```", text, re.DOTALL)
    ada = record("Ada Lovelace", exercise(outcome="wrong", answer="def ping_pong(): ..."))
    bob = record("Bob", exercise(), fault("token_ring"), exercise("tagged_mail", "not attempted"))
    data = database(course_of([ada, bob], "Autumn"), [])
    assert query_rows(data, matrix) == [
        ("Ada Lovelace", 0, "2.1 ✗"),
        ("Bob", 1, "2.1 ✓  2.2 !  2.4 ○"),
    ]
    rows = query_rows(data, answer)
    assert [(row[0], row[4], row[5]) for row in rows] == [
        ("def ping_pong(): ...", 0, "passed"),
        ("def ping_pong(): ...", 0, "wrong"),
        ("def ping_pong(): ...", 1, "wrong"),
    ]
