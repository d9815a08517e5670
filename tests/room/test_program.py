"""`course plan`: what is proposed fits, is in the course's order, and says what is left out."""

from __future__ import annotations

from functools import cache

import pytest
from click.testing import CliRunner

from helpers.course.cli import main
from helpers.course.workspace import find_workspace
from helpers.room.lesson import Lesson, lessons
from helpers.room.program import BREAK, FIRST, TOO_LATE, UNTIL_BREAK, as_text, plan
from tests.room.programs import PAGE, PROGRAMS, with_programs


@cache
def known() -> tuple[Lesson, ...]:
    return lessons(find_workspace())


@pytest.mark.parametrize(("hours", "sessions"), [(2, 1), (12, 2), (15, 5), (21, 14), (60, 20)])
def test_a_program_fits_with_its_breaks(hours: int, sessions: int) -> None:
    program = plan(known(), hours, sessions)
    assert len(program.sessions) <= sessions
    for session in program.sessions:
        assert session[0].start == 0 and session[-1].end <= 60 * hours // sessions
        since = 0
        for line, after in zip(session, [*session[1:], None], strict=True):
            assert after is None or after.start == line.end
            if line.step is None:
                assert line.end - line.start == BREAK and since >= UNTIL_BREAK
                since = 0
            else:
                assert line.end - line.start == line.step.minutes
                assert since < UNTIL_BREAK
                since += line.step.minutes
                begins = line.step.part is line.step.lesson.parts[0]
                assert not begins or line.start + TOO_LATE <= 60 * hours // sessions


@pytest.mark.parametrize("hours", [4, 12, 60])
def test_every_core_exercise_and_notebook_is_in_a_program_or_said_to_be_left_out(
    hours: int,
) -> None:
    program = plan(known(), hours, hours // 4)
    steps = [line.step for session in program.sessions for line in session if line.step]
    taught = [each for each in known() if each not in program.left_out]
    done = [step.part for step in steps if step.part.exercise]
    assert [*done, *program.fewer] and set(done).isdisjoint(program.fewer)
    assert {*done, *program.fewer} == {part for each in taught for part in each.core}
    assert not any(part.is_further for part in done)
    # the order is the course's, all is explained, and no exercise comes without the one before it
    chosen = {*done, *(part for each in taught for part in each.explained)}
    assert [step.part for step in steps] == [p for x in taught for p in x.parts if p in chosen]
    for each in taught:
        own = [part for part in done if part in each.parts]
        assert own == list(each.core[: len(own)]) and own


def test_the_whole_course_fits_into_enough_time() -> None:
    program = plan(known(), 60, 20)
    assert not program.left_out and not program.fewer


def test_each_notebook_has_its_place_in_the_order() -> None:
    assert sorted(FIRST) == [int(each.number) for each in known()]


def test_minutes_are_those_of_the_headings_and_estimates_for_the_rest() -> None:
    third = known()[2]
    assert [part.minutes for part in third.core] == [
        part.exercise.minutes for part in third.core if part.exercise
    ]
    assert third.title.startswith("02 · ")
    by_title = {part.title: part for part in third.parts}
    assert by_title["Next"].minutes == by_title["Further reading"].minutes == 0
    assert by_title["One message"].minutes >= 1


def test_the_command_prints_a_program() -> None:
    done = CliRunner().invoke(main, ["plan", "--hours", "4"])
    assert done.exit_code == 0
    assert done.output == as_text(plan(known(), 4, 1)) + "\n"
    assert "0:00 to" in done.output and "Left out, notebooks: " in done.output


def test_too_little_time_is_an_error_that_says_what_to_do() -> None:
    done = CliRunner().invoke(main, ["plan", "--hours", "0.5"])
    assert done.exit_code == 1 and "give more --hours" in done.output


def test_the_guide_has_the_programs_as_they_are_now() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"### {title}" in text for title, _, _ in PROGRAMS)
    assert text == with_programs(text), "run `python -m tests.room.programs`"
