"""Show advice only if it explains all wrong values. These tests make runs without ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from helpers.check_result import CaseVerdict, Outcome
from helpers.checks.answer_shape import AnswerShape
from helpers.checks.case import AllRanks, Case, Finding, PerRank
from helpers.checks.execution import Execution
from helpers.checks.exercise import Exercise
from helpers.checks.failure_advice import CrashAdvice, HangAdvice
from helpers.checks.judge import judge
from helpers.checks.kinds import Kind
from helpers.checks.missing_files import missing_file_advice
from helpers.checks.relations import NOTHING_RETURNED_ADVICE, PRINTED_ONLY_ADVICE, advise
from helpers.checks.rules import Calls, OnlyCalls
from helpers.checks.rules_collectives import Root
from helpers.ranks.failures import Deadlock, RankDied, RankError, RankFailed, RankTimeout
from helpers.ranks.run import Run
from helpers.trace.events import Diagnosis, Event, OtherWait, Trace

X = torch.tensor([1.0, -2.0, 4.0])
SUM = "This is the sum: divide by {n}."


def case(right: Any = X, n: int = 2, **more: Any) -> Case:
    return Case("a case", [(X,)] * n, right, **more)


def ran(values: list[Any], *events: Event, output: str = "", failure: Any = None) -> Run:
    n = len(values)
    return Run(n, values, [output] * n, Trace(n, events), failure)


def broadcast(rank: int, root: int = 0) -> Event:
    return Event(rank, 0, "broadcast", "broadcast", "0", (0, 1), root=root, start_ns=1, end_ns=2)


def exercise(*rules: Any, failed: tuple[Any, ...] = (), kind: Kind = Kind.RANKS) -> Exercise:
    return Exercise(lambda draw: case(), rules, failed, kind)


def test_right_values_pass() -> None:
    verdict = judge(exercise(), Execution(case(), ran([X, X])))
    assert verdict.passed and verdict.label == "2 ranks, a case"


def below(got: Any, rank: int) -> Finding | None:
    """Require 1 or more, with advice for -1, for -2, and for both."""
    known = {-1: ("It is one below.", "It is below."), -2: ("It is two below.", "It is below.")}
    return None if got >= 1 else Finding(f"it is {got}", known.get(got, ()))


def test_gives_advice_explaining_all_ranks() -> None:
    right = case(below, n=3, like=1)
    assert judge(exercise(), Execution(right, ran([-1, -1, 1]))).advice == "It is one below."
    assert judge(exercise(), Execution(right, ran([-1, -2, 1]))).advice == "It is below."


def test_withholds_advice_explaining_only_one_rank() -> None:
    verdict = judge(exercise(), Execution(case(below, like=1), ran([-1, -3])))
    assert verdict.advice == "" and verdict.rows[0].problem == "it is -1"


def test_advice_must_explain_other_wrong_cases() -> None:
    right = case(below, like=1)
    one, alike, other = (Execution(right, ran([k, 1])) for k in (-1, -1, -3))
    assert judge(exercise(), one, [alike]).advice
    assert not judge(exercise(), one, [alike, other]).advice


def test_advice_fills_facts_and_keeps_braces() -> None:
    def judge_rank(got: Any, rank: int) -> Finding | None:
        return Finding("it is wrong", "rank {src} of {n}, {'a': 1}")

    verdict = judge(exercise(), Execution(case(judge_rank, facts={"src": 1}), ran([X, X])))
    assert verdict.advice == "rank 1 of 2, {'a': 1}"


def test_shows_advice_from_judge_finding() -> None:
    def positive(got: Any, rank: int) -> Finding | None:
        return None if got > 0 else Finding("it is negative", "Mind the sign.")

    verdict = judge(exercise(), Execution(case(positive, like=1.0), ran([2.0, -1.0])))
    assert (verdict.rows[1].problem, verdict.advice) == ("it is negative", "Mind the sign.")


def test_joint_problem_marks_no_single_rank() -> None:
    def one_each(values: list[Any]) -> Finding | None:
        return Finding("a number is there twice", "Deal.") if values[0] == values[1] else None

    right = AllRanks(lambda got: None if got > 0 else "it is negative", one_each)
    verdict = judge(exercise(), Execution(case(right, like=1.0), ran([2.0, 2.0])))
    assert verdict.outcome is Outcome.WRONG and not any(row.problem for row in verdict.rows)
    assert (verdict.message, verdict.advice) == ("a number is there twice", "Deal.")
    text = judge(
        exercise(), Execution(case(right, like=1.0, shown="n = 2"), ran([2.0, 2.0]))
    ).message
    assert text == "given n = 2\na number is there twice"
    alone = judge(exercise(), Execution(case(right, like=1.0), ran([-1.0, -1.0])))
    assert alone.message == "" and alone.rows[0].problem == "it is negative"


def test_single_rank_joint_problem_marks_rank() -> None:
    right = AllRanks(lambda got: None, lambda values: "there is none")
    verdict = judge(exercise(), Execution(case(right, n=1, like=1.0), ran([2.0], broadcast(0))))
    assert (verdict.message, verdict.rows[0].problem) == ("", "there is none")


def irecv(rank: int, waited: int | None) -> Event:
    return Event(
        rank,
        0,
        "recv",
        "irecv",
        "0",
        (0, 1),
        1 - rank,
        asynchronous=True,
        start_ns=1,
        wait_ns=waited,
    )


def test_nan_advice_mentions_unwaited_call() -> None:
    values = [X, torch.full((3,), torch.nan)]
    message_for = judge(exercise(), Execution(case(), ran(values, irecv(1, None)))).advice
    assert (
        message_for.startswith("Rank 1 never waits for its irecv from rank 0")
        and "NaN" in message_for
    )
    assert judge(exercise(), Execution(case(), ran(values, irecv(1, 5)))).advice == ""


def test_wrongly_typed_values_never_reach_judge() -> None:
    def fails(got: Any, rank: int) -> None:
        raise AssertionError("must not be asked")

    verdict = judge(exercise(), Execution(case(fails, like=1.0), ran(["no number", "no number"])))
    assert verdict.outcome is Outcome.WRONG and "is not a float" in verdict.rows[0].problem


def test_reports_empty_answer() -> None:
    def advice_for(values: list[Any], may_return_nothing: bool = True, **options: Any) -> str:
        shape = AnswerShape(may_return_nothing=may_return_nothing)
        return judge(exercise(), Execution(case(), ran(values, **options)), shape=shape).advice

    assert advice_for([None, None]) == NOTHING_RETURNED_ADVICE
    assert advice_for([None, None], output="4") == PRINTED_ONLY_ADVICE
    general = {NOTHING_RETURNED_ADVICE, PRINTED_ONLY_ADVICE}
    assert advice_for([None, X]) not in general
    # an explicit `return None` is intended
    assert advice_for([None, None], may_return_nothing=False) not in general
    passed = [Execution(case(), ran([X, X]))]
    shape = AnswerShape(may_return_nothing=True)
    advice = advise([Execution(case(), ran([None, None]))], passed, shape)
    assert advice == "This rank returned None. Does every path have a `return`?"


def test_advice_describes_relation_to_right_value() -> None:
    def message_for(right: Any, values: list[Any]) -> str:
        return judge(exercise(), Execution(case(right), ran(values))).advice

    other = torch.tensor([5.0, 7.0, 11.0])
    assert "unchanged" in message_for(other, [X, X])
    assert "2 times too large" in message_for(other, [other * 2] * 2)
    assert "2 times too small" in message_for(other, [other / 2] * 2)
    assert "sign" in message_for(other, [-other] * 2)
    assert "reverse order" in message_for(other, [other.flip(0)] * 2)
    assert "wrong order" in message_for(other, [other[[1, 0, 2]]] * 2)
    assert "dtype" in message_for(other, [other.double()] * 2)
    assert "wait()" in message_for(other, [True, True])
    assert "different rank" in message_for(PerRank([other, X + 9]), [X + 9, X + 9])
    assert message_for(other, [other + 1, other + 2]) == ""


def test_withholds_factor_advice_contradicting_passed_cases() -> None:
    other = torch.tensor([5.0, 7.0, 11.0])
    wrong = Execution(case(other), ran([other * 2] * 2))
    right, empty = (
        Execution(case(other), ran([other] * 2)),
        Execution(case(X[:0]), ran([X[:0]] * 2)),
    )
    assert "2 times too large" in judge(exercise(), wrong, passed_cases=[empty]).advice
    assert judge(exercise(), wrong, passed_cases=[empty, right]).advice == ""


def test_reports_result_parts_with_rounded_numbers() -> None:
    given = case((1, 0.1234567891), parts=("calls", "share"))
    row = judge(exercise(), Execution(given, ran([(1, 0.2234567891), (1, 0.1234567891)]))).rows[0]
    assert row.problem == "share: 0.22346 is not 0.12346"
    assert (row.expected, row.got) == ("(1, 0.123457)", "(1, 0.223457)")
    later = judge(exercise(), Execution(case((0.1234561, 1)), ran([(0.1234564, 1)] * 2))).rows[0]
    assert (later.expected, later.got) == ("(0.1234561, 1)", "(0.1234564, 1)")


def test_reports_stub_of_other_exercise() -> None:
    failure = RankFailed(RankError(0, "NotImplementedError", "Exercise 16.2: Pass on"))
    third = replace(exercise(), number="16.3")
    verdict = judge(third, Execution(case(), ran([None] * 2, failure=failure)))
    assert verdict.outcome is Outcome.CRASHED and "Exercise 16.2" in verdict.advice
    second = judge(
        replace(third, number="16.2"), Execution(case(), ran([None] * 2, failure=failure))
    )
    assert second.outcome is Outcome.NOT_ATTEMPTED


def test_reports_forbidden_input_change() -> None:
    tried = Execution(case(), ran([X, X]), changed=[[], ["x"]])
    verdict = judge(exercise(), tried)
    assert verdict.outcome is Outcome.WRONG and "`x`" in verdict.rows[1].problem


def test_forbidden_call_costs_all_points() -> None:
    events = broadcast(0), broadcast(1)
    counted = judge(exercise(Calls("broadcast", 2)), Execution(case(), ran([X, X], *events)))
    assert (counted.outcome, counted.credit) == (Outcome.WRONG, 0.5)
    forbidden = judge(exercise(OnlyCalls(("send",))), Execution(case(), ran([X, X], *events)))
    assert (forbidden.outcome, forbidden.credit) == (Outcome.FORBIDDEN, 0.0)


def test_failed_run_excuses_missing_calls() -> None:
    failure = RankFailed(RankError(1, "ValueError", "no"))
    given = exercise(Root("src"), Calls("broadcast", 1))
    tried = Execution(
        case(facts={"src": 1}), ran([None, None], broadcast(0, root=0), failure=failure)
    )
    verdict = judge(given, tried)
    assert len(verdict.broken) == 1 and "`src` is 1" in verdict.broken[0]


def test_each_failure_has_outcome_and_message() -> None:
    failed = (
        CrashAdvice("list size", "Cut it into {n} parts.", applies_if_killed=True),
        HangAdvice("Nobody answers."),
    )
    waits = (OtherWait(0, "in recv"), OtherWait(1, "in recv"))

    def verdict(failure: Any) -> tuple[Outcome, str]:
        found = judge(exercise(failed=failed), Execution(case(), ran([None] * 2, failure=failure)))
        return found.outcome, found.advice

    raised = RankFailed(RankError(0, "RuntimeError", "list size 1"))
    assert verdict(raised) == (Outcome.CRASHED, "Cut it into 2 parts.")
    assert verdict(RankDied(0, "SIGABRT", -6, "")) == (Outcome.CRASHED, "Cut it into 2 parts.")
    assert verdict(RankFailed(RankError(0, "KeyError", "'x'"))) == (Outcome.CRASHED, "")
    stuck = Deadlock(Diagnosis("cycle", "stuck", "", waits))
    assert verdict(stuck) == (Outcome.DEADLOCKED, "Nobody answers.")
    assert verdict(RankTimeout(3.0, waits)) == (Outcome.TIMED_OUT, "")
    stub = RankFailed(RankError(0, "NotImplementedError", "Exercise 4.1: write it"))
    assert verdict(stub)[0] is Outcome.NOT_ATTEMPTED
    torchs = RankFailed(RankError(0, "NotImplementedError", "no kernel for this"))
    assert verdict(torchs)[0] is Outcome.CRASHED


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (("ModuleNotFoundError", "No module named 'mine'"), "has no such package"),
        (("FileNotFoundError", "No such file or directory: 'data.csv'"), "only the notebook"),
        (
            (
                "FileNotFoundError",
                "No such file or directory: '/tmp/real-ranks-1-a/world-3/b/port'",
            ),
            "doesn't exist yet",
        ),
        (("OSError", "[Errno 5] Input/output error"), ""),
    ],
)
def test_advises_on_missing_files(error: tuple[str, str], advice: str) -> None:
    text = missing_file_advice(RankFailed(RankError(0, *error)))
    assert advice in text if advice else not text
    assert ("only the notebook" in text) == (advice in {"has no such package", "only the notebook"})


def test_describes_failures_without_launch() -> None:
    waits = (OtherWait(0, "in recv"),)

    def verdict(failure: Any, kind: Kind = Kind.RANKS) -> CaseVerdict:
        one = case(n=1, init=kind is Kind.RANKS)
        return judge(exercise(kind=kind), Execution(one, ran([None], failure=failure)))

    raised = RankFailed(RankError(0, "KeyError", "'rank 0 raised it'"))
    assert verdict(raised).message == "rank 0 raised KeyError: 'rank 0 raised it'"
    assert (
        verdict(raised, Kind.LOCAL).message == "your function raised KeyError: 'rank 0 raised it'"
    )
    assert verdict(RankTimeout(3.0, waits)).message == (
        "timed out after 3 s; all ranks were terminated.\n  rank 0: in recv"
    )
    forked = Diagnosis("stuck", "Rank 0 waits for a process.", "Do not fork.", waits)
    assert verdict(RankTimeout(3.0, waits, diagnosis=forked)).message.endswith("\nDo not fork.")


def test_drawn_deadlock_message_omits_waits() -> None:
    waits = (OtherWait(0, "in recv"), OtherWait(1, "in recv"))
    stuck = Deadlock(Diagnosis("cycle", "Each waits.", "Send first.", waits))
    verdict = judge(exercise(), Execution(case(), ran([None] * 2, failure=stuck)))
    assert "\n  rank 1: in recv\n" in verdict.message
    assert verdict.drawn_message == "Each waits.\nSend first."
