"""`course sessions`: a path in fitting sessions, in order and with breaks; and the paths themselves."""

from __future__ import annotations

from functools import cache

import pytest
from click.testing import CliRunner

from helpers.course.cli import main
from helpers.course.paths import path_names, paths
from helpers.course.workspace import find_workspace
from helpers.teaching.lesson import Lesson, read_lessons
from helpers.teaching.program import (
    BREAK_MINUTES,
    NO_NEW_NOTEBOOK_MINUTES,
    WORK_BEFORE_BREAK_MINUTES,
    divide_path,
    format_program,
    steps_of_path,
)
from tests.teaching.programs import PAGE, PROGRAMS, with_programs


@cache
def known() -> tuple[Lesson, ...]:
    return read_lessons(find_workspace())


@pytest.mark.parametrize("name", path_names())
def test_path_parts_exist_and_durations_match(name: str) -> None:
    path = paths()[name]
    by_name = {lesson.notebook: lesson for lesson in known()}
    for stop in path.stops:
        titles = [part.title for part in by_name[stop.notebook].parts]
        assert [title for title in stop.parts if title not in titles] == []
        assert stop.exercises, "a stop has something to do"
    minutes = sum(step.minutes for step in steps_of_path(known(), path))
    assert abs(minutes - path.minutes) <= max(20, path.minutes // 20)


@pytest.mark.parametrize("name", path_names())
@pytest.mark.parametrize("hours", [1.5, 4, 8])
def test_sessions_contain_ordered_parts_and_breaks(name: str, hours: float) -> None:
    sessions = divide_path(known(), paths()[name], int(60 * hours))
    found = [line.step for session in sessions for line in session if line.step]
    assert found == steps_of_path(known(), paths()[name])
    for session in sessions:
        assert session[0].start == 0 and session[-1].end <= 60 * hours
        since = 0
        for line, after in zip(session, [*session[1:], None], strict=True):
            assert after is None or after.start == line.end
            if line.step is None:
                assert line.end - line.start == BREAK_MINUTES and since >= WORK_BEFORE_BREAK_MINUTES
                since = 0
                continue
            assert line.end - line.start == line.step.minutes
            assert since < WORK_BEFORE_BREAK_MINUTES
            since += line.step.minutes
            begins = line.step.part is line.step.lesson.parts[0]
            assert not begins or line.start + NO_NEW_NOTEBOOK_MINUTES <= 60 * hours


def test_takes_minutes_from_headings_or_estimates() -> None:
    third = known()[2]
    assert [part.minutes for part in third.core_exercises] == [
        part.exercise.minutes for part in third.core_exercises if part.exercise
    ]
    assert third.title.startswith("02 · ")
    by_title = {part.title: part for part in third.parts}
    assert by_title["Next"].minutes == by_title["Further reading"].minutes == 0
    assert by_title["One message"].minutes >= 1


@pytest.mark.parametrize("command", ["sessions", "plan"])
def test_command_prints_program(command: str) -> None:
    done = CliRunner().invoke(main, [command, "--path", "ddp", "--hours", "4"])
    assert done.exit_code == 0
    path = paths()["ddp"]
    assert done.output == format_program(path, divide_path(known(), path, 240)) + "\n"
    assert path.goal in done.output and "0:00 to" in done.output


def test_reports_part_longer_than_session() -> None:
    with pytest.raises(
        ValueError,
        match="The part “Find the rank that hangs, from flight records” takes 25 minutes",
    ):
        divide_path(known(), paths()["hang"], 11)


def test_guide_contains_current_programs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"### {title}" in text for title, _, _ in PROGRAMS)
    assert text == with_programs(text), "run `python -m tests.teaching.programs`"
