"""Run many cases in one adversarial world of real ranks, and rerun a failing case in a separate world."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest
import torch
from _pytest.mark import ParameterSet

from helpers.answers.build import Answer, build_answer
from helpers.check_result import CheckResult, Outcome
from helpers.checks.case import Case, PerRank
from helpers.checks.check_answer import grade
from helpers.checks.counterexample import POISON_ADVICE
from helpers.checks.draw import Draw
from helpers.checks.exercise import Exercise
from helpers.checks.registry import get
from helpers.checks.rules import Calls, OnlyCalls
from helpers.checks.rules_collectives import WaitsForAll
from helpers.checks.second_call import SECOND_CALL_ADVICE
from helpers.views.verdict import verdict_text
from tests.submission_files import PRELUDE, sample_called


def case(draw: Draw) -> Case:
    mine = draw.tensors((draw.whole(1, 5),), torch.float64)
    return Case(f"{len(mine[0])} elements", [(x,) for x in mine], right=torch.stack(mine).sum(0))


SUM = replace(Exercise(case, (WaitsForAll(),), sizes=(2, 3)), name="total", number="0.0", count=8)


def whole_case(draw: Draw) -> Case:
    mine = draw.tensors((draw.whole(1, 5),), torch.int64)
    return Case(f"{len(mine[0])} whole numbers", [(x,) for x in mine], torch.stack(mine).sum(0))


WHOLE = replace(SUM, case=whole_case)


def check_body(body: str, exercise: Exercise = SUM) -> CheckResult:
    source = f"def total(rank, world_size, x):\n{dedent(body).strip()}".replace("\n", "\n    ")
    answer = build_answer([PRELUDE, "import time\n" + source], "total")
    assert isinstance(answer, Answer), answer
    return grade(exercise, answer, lambda index: f"cell {index}")


RIGHT = {
    "blocking": "x = x.clone()\ndist.all_reduce(x)\nreturn x",
    "waited for": "work = dist.all_reduce(x, async_op=True)\nwork.wait()\nreturn x",
    "its future": "dist.all_reduce(x, async_op=True).get_future().wait()\nreturn x",
    "what the future gives": "return dist.all_reduce(x, async_op=True).get_future().wait()[0]",
    "a callback": """
        done = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] * 1)
        return done.wait()""",
    "asked whether it is over": """
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            time.sleep(0.001)
        return x""",
    "its own input is an output": """
        parts = [torch.empty_like(x) for _ in range(world_size)]
        parts[rank] = x
        dist.all_gather(parts, x, async_op=True).wait()
        return sum(parts)""",
    "into one tensor": """
        whole = torch.empty(world_size * len(x), dtype=x.dtype)
        dist.all_gather_into_tensor(whole, x, async_op=True).wait()
        return whole.view(world_size, -1).sum(0)""",
    "by transfers": """
        got = [torch.empty_like(x) for _ in range(world_size)]
        works = [dist.isend(x, r) for r in range(world_size) if r != rank]
        works += [dist.irecv(got[r], r) for r in range(world_size) if r != rank]
        for work in works:
            work.wait()
        got[rank] = x
        return sum(got)""",
    "into rows of one tensor, which are written to next to each other": """
        rows = torch.empty(world_size, len(x), dtype=x.dtype)
        works = [dist.irecv(rows[r], r) for r in range(world_size) if r != rank]
        works += [dist.isend(x, r) for r in range(world_size) if r != rank]
        rows[rank] = x
        for work in works:
            work.wait()
        return rows.sum(0)""",
    "a group of its own": "dist.all_reduce(x, group=dist.new_group())\nreturn x",
    "all in one list": """
        got = torch.empty_like(x)
        others = [r for r in range(world_size) if r != rank]
        boxes = {r: torch.empty_like(x) for r in others}
        ops = [dist.P2POp(dist.isend, x, r) for r in others]
        ops += [dist.P2POp(dist.irecv, boxes[r], r) for r in others]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return x + sum(boxes.values())""",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_answers_pass_in_adversarial_world(body: str) -> None:
    result = check_body(body)
    assert result.passed and len(result.cases) == 8, verdict_text(result)


WRONG = {
    "sleeps in place of waiting": (
        "work = dist.all_reduce(x, async_op=True)\ntime.sleep(0.3)\ny = x.clone()\nwork.wait()\nreturn y",
        "nan",
    ),
    "uses it before it has waited": (
        "work = dist.all_reduce(x, async_op=True)\ny = x + 0\nwork.wait()\nreturn y",
        "nan",
    ),
    "never waits": ("dist.all_reduce(x, async_op=True)\nreturn x", "never calls wait"),
    "writes to what is being sent": (
        """
        got = [torch.empty_like(x) for _ in range(world_size)]
        work = dist.all_gather(got, x, async_op=True)
        x += 1
        work.wait()
        return sum(got)""",
        "was changed before wait",
    ),
    "writes to where the result will be": (
        """
        x = x.clone()
        work = dist.all_reduce(x, async_op=True)
        x /= world_size
        work.wait()
        return x * world_size""",
        "was changed before wait",
    ),
    "trusts that new memory holds zeros": (
        "y = torch.empty_like(x)\ny += x\ndist.all_reduce(y)\nreturn y",
        "nan",
    ),
    "right in worlds of two only": ("dist.all_reduce(x)\nreturn x / world_size * 2", "3 ranks"),
    "fails in worlds of three": (
        "assert world_size < 3, 'three are too many'\ndist.all_reduce(x)\nreturn x",
        "three are too many",
    ),
    "a message that nobody takes": (
        "if rank == 0:\n    dist.isend(x.clone(), 1)\ndist.all_reduce(x)\nreturn x + rank * 0",
        "",
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("body", "says"), WRONG.values(), ids=WRONG)
def test_wrong_answers_fail_in_adversarial_world(body: str, says: str) -> None:
    result = check_body(body)
    assert not result.passed or says == "", verdict_text(result)
    assert says in verdict_text(result), verdict_text(result)


@pytest.mark.extended
def test_rejects_answer_failing_in_later_calls() -> None:
    """The answer is rejected although each case passes when rerun in a separate world."""
    body = 'total.n = getattr(total, "n", 0) + 1\ndist.all_reduce(x)\nreturn x * total.n'
    result = check_body(body, replace(SUM, count=24))
    assert result.outcome is Outcome.WRONG and 0 < result.points < result.out_of


def first_advice(result: CheckResult) -> str:
    return next(case.advice for case in result.cases if not case.passed)


OVERFLOWS = {
    "a sum": "y, work = x + 0, dist.all_reduce(x, async_op=True)\ny += x\nwork.wait()\nreturn y",
    "twice": "work = dist.all_reduce(x, async_op=True)\ny = 2 * x\nwork.wait()\nreturn y - x",
    "a sum with new memory": "y = torch.empty_like(x) + x\ndist.all_reduce(y)\nreturn y",
}
EARLY = {
    "before wait": "work = dist.all_reduce(x, async_op=True)\ny = x + 0\nwork.wait()\nreturn y",
    "new memory": "y = torch.empty_like(x)\ny += x\ndist.all_reduce(y)\nreturn y",
    "a number": "y = torch.empty(1)\ndist.all_reduce(x)\nreturn x + y.item()",
}
OWN_NAN = {
    "0 / 0": "dist.all_reduce(x)\nreturn x + torch.zeros(1) / torch.zeros(1)",
    "the mean of nothing": "dist.all_reduce(x)\nreturn x + x[:0].mean()",
}


def first_of(programs: dict[str, str]) -> list[ParameterSet]:
    """Return the programs as parameters of a test. `make test` only runs the first of them."""
    return [
        pytest.param(body, id=name, marks=pytest.mark.extended if number else ())
        for number, (name, body) in enumerate(programs.items())
    ]


@pytest.mark.parametrize("body", first_of(OVERFLOWS))
def test_second_run_reveals_integer_poison(body: str) -> None:
    assert first_advice(check_body("x = x.clone()\n" + body, WHOLE)) == POISON_ADVICE


@pytest.mark.parametrize("body", first_of(EARLY))
def test_second_run_reveals_nan_poison(body: str) -> None:
    assert first_advice(check_body("x = x.clone()\n" + body)) == POISON_ADVICE


@pytest.mark.parametrize("body", OWN_NAN.values(), ids=OWN_NAN)
def test_arithmetic_nan_never_counts_as_poison(body: str) -> None:
    result = check_body("x = x.clone()\n" + body)
    assert not result.passed and first_advice(result) != POISON_ADVICE


NOTHING_EARLY = {
    "another mistake": "x = x.clone()\ndist.all_reduce(x)\nreturn x + rank + 5",
    "at random": "return x + torch.randint(2**40, x.shape) + rank * len(x)",
    "waits": "x = x * 7\nwork = dist.all_reduce(x, async_op=True)\nwork.wait()\nreturn x + rank",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("body", NOTHING_EARLY.values(), ids=NOTHING_EARLY)
def test_integer_mistakes_never_count_as_poison(body: str) -> None:
    result = check_body(body, WHOLE)
    assert not result.passed and first_advice(result) != POISON_ADVICE


@pytest.mark.extended
def test_shows_small_case_of_smallest_world() -> None:
    result = check_body("dist.all_reduce(x)\nreturn x if len(x) < 3 else x + 1")
    first = next(case for case in result.cases if not case.passed)
    # The drawn case has five elements, but also fails with three.
    assert first.label == "2 ranks, 3 elements", verdict_text(result)


@pytest.mark.extended
def test_rejects_answer_keeping_state_between_calls() -> None:
    """The answer keeps a number between calls, so calling it twice gives a wrong result."""
    result = check_body("""
        total.calls = getattr(total, "calls", 0) + 1
        dist.all_reduce(x)
        return x if total.calls == 1 else x + 1""")
    assert not result.passed and first_advice(result) == SECOND_CALL_ADVICE


def test_failing_check_never_blames_answer() -> None:
    def broken(draw: Draw) -> Case:
        def judge(got: object, rank: int) -> None:
            raise KeyError("a slip in the check")

        return replace(case(draw), right=judge)

    result = check_body(RIGHT["blocking"], replace(SUM, case=broken))
    assert result.outcome is Outcome.FAULT and "not your answer" in result.message


ODD = {
    "torch.tensor([1 + 2j])": "a tensor of shape (1,) and dtype complex64",
    "[10**400]": "a list of 1 element",
    "'words'": "a value of type str",
}


@pytest.mark.parametrize("value", ODD)
def test_value_of_unexpected_type_fails(value: str) -> None:
    def judged_case(draw: Draw) -> Case:
        return replace(case(draw), right=lambda got, rank: "" if float(got[0]) > 0 else "too small")

    result = check_body(f"return {value}", replace(SUM, case=judged_case))
    assert (result.outcome, result.points) == (Outcome.WRONG, 0.0)
    assert f"rank 0 returned {ODD[value]}" in result.message and "report it" in result.message
    assert ODD[value] in result.unjudged and "report it" not in result.unjudged


@pytest.mark.extended
def test_huge_range_is_never_expanded() -> None:
    def judged_case(draw: Draw) -> Case:
        return replace(case(draw), right=lambda got, rank: str(sum(got)))

    for value in ("range(10**9)", "[range(2**70)]", "{'a': (1, range(0, -(10**12), -7))}"):
        result = check_body(f"return {value}", replace(SUM, case=judged_case))
        assert result.outcome is Outcome.WRONG
        assert "no answer needs that many numbers" in verdict_text(result)


@pytest.mark.extended
def test_falsified_case_report_causes_no_fault() -> None:
    result = check_body("""
        import sys
        frame = sys._getframe(1)
        frame.f_locals["results"].extend([[x, [], 0, 0]] * 20)
        dist.all_reduce(x)
        return x""")
    assert result.outcome is not Outcome.FAULT


@pytest.mark.extended
def test_right_values_can_differ_by_rank() -> None:
    def each(draw: Draw) -> Case:
        return Case(
            "ranks", [(torch.ones(1),)] * draw.ranks, right=PerRank(list(range(draw.ranks)))
        )

    assert check_body("return rank", replace(SUM, case=each)).passed
    assert not check_body("return 0", replace(SUM, case=each)).passed


TRAINS = sample_called("train_synchronously", "strided shares").source
"""An answer that calls the answer to a different exercise."""


@pytest.mark.extended
@pytest.mark.parametrize(
    ("right", "wrong", "noted"),
    [
        ("p.grad /= dist.get_world_size()", "pass", True),
        ("mean.item() / world_size", "mean.item()", False),
    ],
    ids=["the other is", "the other is not"],
)
def test_reports_failing_dependency_of_answer(right: str, wrong: str, noted: bool) -> None:
    name = "train_synchronously"
    answer = build_answer([PRELUDE, TRAINS.replace(right, wrong)], name)
    assert isinstance(answer, Answer), answer
    result = grade(get(name), answer, str, every_case=False)
    said = "`average_gradients` (8.1), which this answer calls, fails its own check"
    assert not result.passed and (said in verdict_text(result)) is noted, verdict_text(result)


# --- assigning calls to cases ---------------------------------------------------------------------

ONLY = replace(SUM, rules=(OnlyCalls(("all_reduce",)), Calls("all_reduce", 1)))
WINDOWS = {
    "its end is reported too early": """
        import sys
        harness = sys._getframe(1).f_globals
        count = harness["recorded_call_count"]
        dist.all_reduce(torch.zeros(1))
        end = count()
        parts = [None] * world_size
        dist.all_gather_object(parts, x)
        def once():
            harness["recorded_call_count"] = count
            return end
        harness["recorded_call_count"] = once
        return sum(parts)""",
    "the last case pays for all": """
        import sys
        frame = sys._getframe(1)
        given = [inputs[0] for inputs in frame.f_locals["given"]]
        done = frame.f_locals["results"]
        if len(done) + 1 < len(given):
            dist.all_reduce(torch.zeros(1))
            return torch.zeros_like(x)
        parts = [None] * world_size
        dist.all_gather_object(parts, given)
        sums = [sum(tensors) for tensors in zip(*parts)]
        for told, total in zip(done, sums):
            told[0] = total
        return sums[-1]""",
}


@pytest.mark.extended
@pytest.mark.parametrize("body", WINDOWS.values(), ids=WINDOWS)
def test_falsified_case_end_hides_no_call(body: str) -> None:
    """The rank reports the end of a case, but an answer that falsifies this report cannot hide a call."""
    honest = check_body(
        "parts = [None] * world_size\ndist.all_gather_object(parts, x)\nreturn sum(parts)", ONLY
    )
    result = check_body(body, ONLY)
    assert honest.outcome is result.outcome is Outcome.FORBIDDEN, result.cases[0]
    assert result.points == 0


@pytest.mark.extended
def test_rule_breach_costs_only_affected_cases() -> None:
    result = check_body(
        "if len(x) > 2:\n    dist.barrier()\nx = x.clone()\ndist.all_reduce(x)\nreturn x", ONLY
    )
    longer = sum(int(case.label.split()[2]) > 2 for case in result.cases)
    assert 0 < longer < len(result.cases) == ONLY.count
    assert result.points == pytest.approx(ONLY.points * (ONLY.count - longer) / ONLY.count)
