"""Test partial credit: an answer that is right in some cases gets its share, and advice."""

from __future__ import annotations

from itertools import cycle

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.check_result import CaseVerdict, CheckResult, Outcome
from helpers.checks.case import Case
from helpers.checks.case_runs import group_cases, run_groups
from helpers.checks.check_answer import combine_verdicts, grade
from helpers.checks.draw import Draw
from helpers.checks.exercise import Exercise
from helpers.checks.registry import get
from helpers.checks.rules import Calls
from helpers.checks.worlds import Worlds

RIGHT_WHERE_IT_DIVIDES = """
import torch.distributed as dist

def split_sum(rank, world_size, x):
    each = len(x) // world_size
    out = x.new_empty(each)
    dist.reduce_scatter_single(out, x[: each * world_size])
    return out
"""


def graded(*, every_case: bool) -> CheckResult:
    answer = build_answer([RIGHT_WHERE_IT_DIVIDES], "split_sum")
    assert isinstance(answer, Answer), answer
    return grade(get("split_sum"), answer, str, every_case=every_case)


def test_passing_cases_earn_proportional_points() -> None:
    result = graded(every_case=True)
    passed = [case.passed for case in result.cases]
    assert 0 < sum(passed) < len(passed) == get("split_sum").count
    assert result.outcome is Outcome.WRONG and result.out_of == 10
    assert result.points == round(10 * sum(passed) / len(passed), 1)


@pytest.mark.extended
def test_early_stop_keeps_verdict_and_advice() -> None:
    whole, short = graded(every_case=True), graded(every_case=False)
    last = len(short.cases) - 1
    assert [case.passed for case in short.cases] == [True] * last + [False]
    assert short.outcome is whole.outcome
    assert short.cases[last].advice == whole.cases[last].advice != ""


EARLY_RETURN = """
import torch
import torch.distributed as dist

def stop_together(rank, world_size, done):
    if not done:
        return False
    flag = torch.tensor(int(done))
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag)
"""


DONE = cycle([[False, False], [True, False]])


def stop_together(draw: Draw) -> Case:
    done = next(DONE)
    return Case(f"done: {done}", [(flag,) for flag in done], right=all(done))


@pytest.mark.parametrize("every_case", [True, False])
def test_runs_all_cases_of_same_size(every_case: bool) -> None:
    """A stuck case after a failed one may be easier to read, so it must not be skipped."""
    rules = (Calls("all_reduce", 1),)
    exercise = Exercise(stop_together, rules, sizes=(2,), count=2, name="stop_together")
    groups, _ = group_cases(exercise, exercise.draw())
    runs = run_groups(
        Worlds(exercise, [EARLY_RETURN]), groups, every_case=every_case, run_next_size=True
    )
    assert [run.verdict.outcome for run in runs] == [Outcome.WRONG, Outcome.DEADLOCKED]


TWO_SUMS = """
import torch.distributed as dist

def global_mean_and_variance(rank, world_size, x):
    x = x.double()
    n, total, squares = x.new_tensor(float(len(x))), x.sum(), (x * x).sum()
    for part in (n, total, squares):
        dist.all_reduce(part)
    mean = float(total / n)
    return mean, float(squares / n) - mean**2
"""


@pytest.mark.extended
def test_broken_traffic_rule_halves_credit() -> None:
    exercise = get("global_mean_and_variance")
    answer = build_answer([TWO_SUMS], exercise.name)
    assert isinstance(answer, Answer), answer
    result = grade(exercise, answer, str)
    assert result.outcome is Outcome.WRONG and not any(case.passed for case in result.cases)
    rules = len(exercise.rules)
    for case in result.cases:
        assert case.credit == (1 - (len(case.broken) - 1) / rules) / 2
    assert 0 < result.points <= exercise.points / 2


ONE_LEVEL = """
import torch.distributed as dist

def two_level_all_reduce(rank, world_size, x, per_host):
    total = x.clone()
    dist.all_reduce(total)
    return total
"""


@pytest.mark.extended
def test_uninformative_cases_earn_no_credit() -> None:
    answer = build_answer([ONE_LEVEL], "two_level_all_reduce")
    assert isinstance(answer, Answer), answer
    result = grade(get("two_level_all_reduce"), answer, str)
    assert any(case.passed for case in result.cases)
    assert not any(row.problem for case in result.cases for row in case.rows)
    assert result.points <= result.out_of / 2


@pytest.mark.parametrize(("wrong", "points"), [(0, 10.0), (1, 6.9), (2, 4.4), (6, 0.0), (12, 0.0)])
def test_wrong_judgement_costs_more_than_share(wrong: int, points: float) -> None:
    exercise, answer = get("who_hangs"), Answer("who_hangs", "", ())
    outcomes = [Outcome.WRONG] * wrong + [Outcome.PASSED] * (24 - wrong)
    verdicts = [
        CaseVerdict(label="dumps", outcome=outcome, credit=float(outcome is Outcome.PASSED))
        for outcome in outcomes
    ]
    assert combine_verdicts(exercise, answer, verdicts, len(verdicts)).points == points


@pytest.mark.extended
def test_forbidden_call_forfeits_all_points() -> None:
    forbidden = TWO_SUMS.replace(
        "dist.all_reduce(part)", "dist.reduce(part, 0); dist.broadcast(part, 0)"
    )
    answer = build_answer([forbidden], "global_mean_and_variance")
    assert isinstance(answer, Answer), answer
    result = grade(get("global_mean_and_variance"), answer, str)
    assert (result.outcome, result.points) == (Outcome.FORBIDDEN, 0.0)
