"""The child that judges: it serves one set of cases after another, and its death is one answer's outcome."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.exercise import VISIBLE_SECRET
from helpers.checks.registry import get
from helpers.grading.judging import Judge
from helpers.grading.sandbox.levels import Plan
from helpers.grading.sandbox.staged import Staged
from tests.grading.notebooks import RIGHT
from tests.submission_files import PRELUDE

EXERCISE = get("ping_pong")


def answer(source: str = RIGHT) -> Answer:
    found = build_answer([PRELUDE, source], EXERCISE.name)
    assert isinstance(found, Answer), found
    return found


@pytest.fixture
def judge(staged: Staged) -> Iterator[Judge]:
    judge = Judge(Plan("none", staged), 1, False, "none", {})
    try:
        yield judge
    finally:
        judge.close()


def test_one_judge_serves_several_sets_of_cases(judge: Judge) -> None:
    visible, hidden = (
        judge.judge(EXERCISE, answer(), secret, 200).record
        for secret in (VISIBLE_SECRET, "a secret")
    )
    assert visible.passed and hidden.passed and not judge.gone
    assert all(case.label.startswith("hidden case") for case in hidden.cases)
    assert judge.seen == {VISIBLE_SECRET, "a secret"}


def test_what_fails_of_itself_is_told_from_what_the_machine_may_have_caused(judge: Judge) -> None:
    lines = {
        "return missing": True,
        "os._exit(3)": True,
        "dist.recv(ball)": True,  # all ranks receive, nobody sends
        "while rank == 0: rank = 0": True,  # it computes until its time is up
        "raise RuntimeError('Connection closed by peer')": False,
        "open('/tmp/is/not/there')": False,
        "os.kill(os.getpid(), 9)": False,
    }
    for line, is_own in lines.items():
        source = f"import os\n\ndef ping_pong(rank, world_size, ball, rounds):\n    {line}\n"
        judged = judge.judge(EXERCISE, answer(source), VISIBLE_SECRET, 200)
        assert not judged.record.passed and judged.is_own is is_own, (line, judged.record.message)


@pytest.mark.parametrize(
    ("number", "outcome"), [(signal.SIGKILL, "crashed"), (signal.SIGXCPU, "flooded")]
)
def test_a_judge_that_dies_is_the_outcome_of_its_answer(
    judge: Judge, number: int, outcome: str
) -> None:
    os.kill(judge._pid, number)
    found = judge.judge(EXERCISE, answer(), "a secret", 200).record
    assert (found.outcome, found.points, found.cases) == (outcome, 0.0, ()) and judge.gone
