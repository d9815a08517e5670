"""What the course says of each way to bypass its rules on communication is true: each is tried here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.grade import grade
from helpers.checks.registry import get
from helpers.grading.bypasses import BYPASSES, Bypass, Fate
from helpers.grading.explained import LOOK
from helpers.grading.grader import joined
from helpers.grading.judging import written_down
from helpers.grading.record import ExerciseRecord
from helpers.grading.sandbox.levels import Plan, Sandbox
from tests.grading.hostile import traffic
from tests.grading.hostile.attack import text_of
from tests.submission_files import PRELUDE

EXERCISE = "ring_all_reduce"


@pytest.fixture(scope="module")
def sandbox(plan: Plan) -> Iterator[Sandbox]:
    """One for all of them: each begins with fresh ranks and an empty folder."""
    with Sandbox(plan) as sandbox:
        yield sandbox


def tried(sandbox: Sandbox, name: str) -> ExerciseRecord:
    answer = build_answer([PRELUDE, traffic.BYPASSES[name], traffic.SHOW], EXERCISE)
    assert isinstance(answer, Answer), answer
    exercise = get(EXERCISE)
    result = grade(exercise, answer, str, connection=sandbox.connection)
    visible = written_down(result, exercise, False, "none")
    return joined(exercise, answer, visible, visible)


def test_every_road_that_is_told_of_is_gone_here() -> None:
    assert {bypass.name for bypass in BYPASSES} == set(traffic.BYPASSES)


@pytest.mark.parametrize("bypass", BYPASSES, ids=lambda bypass: bypass.name)
def test_what_happens_to_a_bypass(sandbox: Sandbox, bypass: Bypass) -> None:
    if bypass.fate is Fate.COUNTED and sandbox.plan.level != "bubblewrap":
        pytest.skip("only bubblewrap's network can be counted from outside")
    if bypass.name == "shared memory" and sandbox.plan.level != "bubblewrap":
        pytest.skip("what one case leaves in this machine's /dev/shm is in the way of the next")
    record = tried(sandbox, bypass.name)
    if bypass.fate is Fate.CONTAINED:
        assert (record.outcome, record.points) == ("forbidden call", 0.0), text_of(record)
        return
    assert record.outcome == "passed", text_of(record)
    assert any(flag.startswith(LOOK) for flag in record.flags) or bypass.fate is not Fate.COUNTED
    assert bool(record.flags) is (bypass.fate is not Fate.UNDETECTABLE), record.flags
