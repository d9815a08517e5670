"""Test kind SCRIPT: the answer runs as a separate script, and its verdict looks like any other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.check_result import CheckResult, Outcome
from helpers.checks.case import Case
from helpers.checks.check_answer import grade
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.views.verdict import verdict_text
from tests.checks.script_programs import start

ROOT = str(Path(__file__).parents[2])
RIGHT = """
import os
import torch
import torch.distributed as dist
def total(nproc):
    x = torch.tensor(float(os.environ["RANK"]))
    dist.all_reduce(x)
    return x
"""


def check_script(source: str, *ways: str) -> CheckResult:
    env = {"COURSE_ROOT": ROOT, "PYTHONPATH": ROOT}

    def case(how: str) -> Case:
        return Case(how, [(how, 3)] * 3, right=float(sum(range(3))), env=env, seconds=14)

    cheap = [how for how in ways if how != "torchrun"] or [*ways]
    exercise = Exercise(
        lambda draw: case(draw.of(*cheap)),
        kind=Kind.SCRIPT,
        driver=start,
        count=1,
        last=(lambda draw: case("torchrun")) if "fork" in ways and "torchrun" in ways else None,
        name="total",
    )
    answer = build_answer([source], "total")
    assert isinstance(answer, Answer), answer
    return grade(exercise, answer, lambda index: f"cell {index}")


@pytest.mark.extended
def test_right_answer_passes_fork_and_torchrun() -> None:
    result = check_script(RIGHT, "fork", "torchrun")
    assert result.passed, verdict_text(result)
    assert len(result.cases) == 2
    assert result.cases[1].run is not None
    assert result.cases[1].run.output == ["started\n"] * 3


@pytest.mark.extended
@pytest.mark.parametrize("how", ["fork", "torchrun"])
def test_exception_report_quotes_learner_line(how: str) -> None:
    wrong = RIGHT.replace("    dist.all", "    if nproc and x.item() == 1: {}['lr']\n    dist.all")
    text = verdict_text(check_script(wrong, how))
    assert "rank 1 raised KeyError: 'lr'" in text
    assert "{}['lr']" in text and "cell 0" in text


def test_wrong_value_skips_torchrun_case() -> None:
    result = check_script(RIGHT.replace("return x", "return x / nproc"), "fork", "torchrun")
    assert result.outcome is Outcome.WRONG
    assert [case.label for case in result.cases] == ["fork"]
    assert "1 is not 3" in verdict_text(result)


def test_stub_counts_as_unattempted() -> None:
    result = check_script(
        RIGHT.replace("    x =", "    raise NotImplementedError\n    x ="), "fork"
    )
    assert result.outcome is Outcome.NOT_ATTEMPTED


def test_reports_signal_of_dead_worker() -> None:
    result = check_script(RIGHT.replace("    x =", "    os.kill(os.getpid(), 9)\n    x ="), "fork")
    assert result.outcome is Outcome.CRASHED
    assert "SIGKILL" in verdict_text(result)


@pytest.mark.extended
def test_hanging_script_times_out() -> None:
    result = check_script(RIGHT.replace("    x =", "    while True: pass\n    x ="), "fork")
    assert result.outcome is Outcome.TIMED_OUT, verdict_text(result)


def test_restarted_script_can_pass() -> None:
    once = "    if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': os._exit(3)\n    x ="
    result = check_script(RIGHT.replace("    x =", once), "fork")
    assert result.passed, verdict_text(result)


def test_mutual_wait_report_lists_lines() -> None:
    apart = "    if x.item() == 0: dist.barrier()\n    dist.all"
    result = check_script(RIGHT.replace("    dist.all", apart), "fork")
    text = verdict_text(result)
    assert result.outcome is Outcome.TIMED_OUT, text
    assert "rank 0: cell 0, line 7, in total: if x.item() == 0: dist.barrier()" in text
    assert "rank 1: cell 0, line 8, in total: dist.all_reduce(x)" in text
    assert "The ranks are blocked at different lines" in text


def test_report_locates_wait_for_returned_rank() -> None:
    alone = "    if x.item() > 1: return x\n    dist.all"
    result = check_script(RIGHT.replace("    dist.all", alone), "fork")
    text = verdict_text(result)
    assert result.outcome is Outcome.CRASHED
    assert re.search(r"rank [01] raised RuntimeError", text), text
    assert "dist.all_reduce(x)" in text and "without an error message" not in text
