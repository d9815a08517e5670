"""The judging child: its results for an answer, and the result if the child dies."""

from __future__ import annotations

import os
import signal

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.registry import get
from helpers.grading import judge_process
from helpers.grading.judge_process import Attempt, run_attempt
from helpers.grading.machine_faults import Doubt
from helpers.grading.sandbox.levels import Plan, Sandbox
from tests.grading.notebooks import RIGHT
from tests.submission_files import PRELUDE

EXERCISE = get("ping_pong")


def answer(source: str = RIGHT) -> Answer:
    found = build_answer([PRELUDE, source], EXERCISE.name)
    assert isinstance(found, Answer), found
    return found


def run_plan(
    plan: Plan, source: str = RIGHT, within_s: float = 200, at_once: bool = False
) -> Attempt:
    with Sandbox(plan) as sandbox:
        parts = EXERCISE, answer(source), "a secret", sandbox.connection
        return run_attempt(*parts, within_s, in_shared_worlds=at_once)


@pytest.mark.sample(1)
@pytest.mark.parametrize("at_once", [False, True])
def test_visible_cases_precede_hidden_cases(plan: Plan, at_once: bool) -> None:
    found = run_plan(plan, at_once=at_once)
    assert (found.record.outcome, found.record.points, found.doubt) == ("passed", 10, Doubt.NONE)
    labels = [case.label for case in found.record.cases]
    hidden = [label.startswith("hidden case") for label in labels]
    assert hidden == [case.hidden for case in found.record.cases] == sorted(hidden)
    assert any(hidden) and not all(hidden)


@pytest.mark.extended
def test_distinguishes_answer_failures_from_machine_failures(
    plan: Plan,
) -> None:
    lines = {
        "return missing": Doubt.CHECK,
        "os._exit(3)": Doubt.CHECK,
        "dist.recv(ball)": Doubt.CHECK,  # all ranks receive, none sends
        "return 1": Doubt.NONE,
        "raise RuntimeError('Connection closed by peer')": Doubt.MACHINE,
        "open('/tmp/is/not/there')": Doubt.CHECK,  # a second try would also find no file
        "os.kill(os.getpid(), 9)": Doubt.MACHINE,
    }
    for line, doubt in lines.items():
        source = f"import os\n\ndef ping_pong(rank, world_size, ball, rounds):\n    {line}\n"
        found = run_plan(plan, source)
        assert not found.record.passed and found.doubt is doubt, (line, found.record.message)


@pytest.mark.parametrize(
    ("number", "outcome"), [(signal.SIGKILL, "crashed"), (signal.SIGXCPU, "flooded")]
)
def test_dead_judge_determines_answer_outcome(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, number: int, outcome: str
) -> None:
    monkeypatch.setattr(judge_process, "grade", lambda *of, **more: os.kill(os.getpid(), number))
    found = run_plan(plan).record
    assert (found.outcome, found.points, found.cases) == (outcome, 0.0, ())


def test_terminates_slow_judge(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_process, "grade", lambda *of, **more: signal.pause())
    found = run_plan(plan, within_s=0.2)
    assert (found.record.outcome, found.doubt) == ("crashed", Doubt.MACHINE)
