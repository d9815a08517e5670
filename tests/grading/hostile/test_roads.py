"""What the course says of each road past its rules on traffic is true: each is gone here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.grade import grade
from helpers.checks.registry import get
from helpers.grading.explained import LOOK
from helpers.grading.judging import judged
from helpers.grading.record import ExerciseRecord
from helpers.grading.records import exercise_record
from helpers.grading.roads import ROADS, Fate, Road
from helpers.grading.sandbox.walls import Plan, Sandbox
from tests.grading.hostile import traffic
from tests.grading.hostile.attack import text_of
from tests.submission_files import PRELUDE

EXERCISE = "ring_all_reduce"


@pytest.fixture(scope="module")
def sandbox(plan: Plan) -> Iterator[Sandbox]:
    """One for all of them: each road begins with fresh ranks and an empty folder."""
    with Sandbox(plan) as sandbox:
        yield sandbox


def gone(sandbox: Sandbox, road: str) -> ExerciseRecord:
    answer = build_answer([PRELUDE, traffic.ROADS[road], traffic.SHOW], EXERCISE)
    assert isinstance(answer, Answer), answer
    exercise = get(EXERCISE)
    result = grade(exercise, answer, str, connection=sandbox.connection)
    result = judged(result, exercise, False, "none")
    return exercise_record(exercise, answer, result, result)


def test_every_road_that_is_told_of_is_gone_here() -> None:
    assert {road.name for road in ROADS} == set(traffic.ROADS)


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.name)
def test_what_becomes_of_a_road(sandbox: Sandbox, road: Road) -> None:
    if road.fate is Fate.COUNTED and sandbox.plan.level != "bubblewrap":
        pytest.skip("only bubblewrap's network can be counted from outside")
    if road.name == "shared memory" and sandbox.plan.level != "bubblewrap":
        pytest.skip("what one case leaves in this machine's /dev/shm is in the way of the next")
    record = gone(sandbox, road.name)
    if road.fate is Fate.CONTAINED:
        assert (record.outcome, record.points) == ("forbidden call", 0.0), text_of(record)
        return
    assert record.outcome == "passed", text_of(record)
    assert any(flag.startswith(LOOK) for flag in record.flags) or road.fate is not Fate.COUNTED
    assert bool(record.flags) is (road.fate is not Fate.UNDETECTABLE), record.flags
