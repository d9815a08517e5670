"""Compare the ranks' values in one case with the right values, and return a verdict with true advice.

    values: right? -> which relation to the right value explains every wrong rank of all cases? -> advice
    trace:  rules  -> facts, shown next to it

Advice is a sentence that explains all differences. If there is no such sentence, only the difference is
shown.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

from helpers.check_result import CaseVerdict, Outcome, Row
from helpers.checks.answer_shape import NO_SHAPE, AnswerShape
from helpers.checks.case import AllRanks, Case, Finding, value_for_rank
from helpers.checks.compare import round_floats
from helpers.checks.execution import Execution, find_impossible_value
from helpers.checks.exercise import Exercise
from helpers.checks.failed_runs import TOO_SLOW_ADVICE, FailedRun, find_kind
from helpers.checks.kinds import Kind
from helpers.checks.relations import advise
from helpers.checks.unwaited import missing_wait_advice
from helpers.ranks.run import RankFailure, Run
from helpers.views.plain import plural
from helpers.views.values import short_value


def judge(
    exercise: Exercise,
    execution: Execution,
    other_failures: Sequence[Execution] = (),
    passed_cases: Sequence[Execution] = (),
    shape: AnswerShape = NO_SHAPE,
) -> CaseVerdict:
    """Judge one case. other_failures: more failed cases, which advice must also explain.

    passed_cases: passed cases, which the advised change must not make wrong. shape: the answer's shape, whose
    parameters label the inputs for the reader.

    Only the exercise's functions can raise an error. `JudgeFailed` means that they failed on a returned
    value, which may be of an unexpected kind. Any other error is a fault of the check, not of the answer.
    """
    case, run, label = execution.case, execution.run, label_of(exercise, execution.case)
    if run.failure is not None:
        return _judge_failure(exercise, case, run, run.failure)
    all_findings, joint_finding = execution.all_findings(), execution.joint_finding()
    # these parts cannot be confirmed outside the rank, so their values must at least be possible
    impossible = [find_impossible_value(exercise.reported, value) for value in run.values]
    # an impossible count is a lie or a broken driver, so findings from it mean nothing
    all_findings = [
        impossible_value or found
        for impossible_value, found in zip(impossible, all_findings, strict=True)
    ]
    # in a world of one rank, a problem of all values together is shown next to the rank's value
    if case.world_size == 1:
        all_findings, joint_finding = [all_findings[0] or joint_finding], None
    rules = exercise.rules
    if case.world_size == 1 and case.init and not exercise.kind.is_alone and not run.trace.calls:
        # a single rank has no peer, and its code may take that into account from the start
        rules = ()
    problems = [(rule, problem) for rule in rules if (problem := rule.problem(run.trace, case))]
    broken = tuple(problem for _, problem in problems)
    broken_rules = tuple(rule.text for rule, _ in problems)
    if any(all_findings) or joint_finding:
        # do this only for failures, because formatting passed values takes as long as comparing them, and
        # their text is never read
        rows = tuple(
            _make_row(exercise, execution, rank, found, shape.parameters)
            for rank, found in enumerate(all_findings)
        )
        advice = advise([execution, *other_failures], passed_cases, shape)
        if exercise.kind.is_adversarial and not advice:
            advice = missing_wait_advice(run)
        # this finding concerns all ranks together, so no single rank is right or wrong
        all_ranks_text = "" if joint_finding is None else _describe_joint(case, joint_finding)
        found = [finding for finding in (*all_findings, joint_finding) if finding]
        if all(finding.rests_on_time for finding in found) and not broken:
            all_ranks_text = f"{all_ranks_text}\n{TOO_SLOW_ADVICE}".strip()
            return CaseVerdict(
                label=label,
                outcome=Outcome.TOO_SLOW,
                rows=rows,
                broken=broken,
                message=all_ranks_text,
                advice=advice,
                run=run,
            )
        # Python prints the exceptions of threads and continues, and a check shows no output.
        all_ranks_text = "\n".join(filter(None, [*run.thread_errors, all_ranks_text]))
        return CaseVerdict(
            label=label,
            outcome=Outcome.WRONG,
            rows=rows,
            broken=broken,
            broken_rules=broken_rules,
            message=all_ranks_text,
            advice=advice,
            run=run,
        )
    if broken:
        forbidden = any(rule.forbids for rule, _ in problems)
        outcome = Outcome.FORBIDDEN if forbidden else Outcome.WRONG
        # With broken rules, right values earn at most half of the points, because the task is about the
        # rules. The more rules are broken, the less remains of this half.
        credit = 0.0 if forbidden else (1 - (len(broken) - 1) / len(exercise.rules)) / 2
        return CaseVerdict(
            label=label,
            outcome=outcome,
            credit=credit,
            broken=broken,
            broken_rules=broken_rules,
            run=run,
        )
    return CaseVerdict(label=label, outcome=Outcome.PASSED, credit=1.0, run=run)


def _judge_failure(exercise: Exercise, case: Case, run: Run, failure: RankFailure) -> CaseVerdict:
    failed = FailedRun(exercise, case, run, failure)
    kind = find_kind(failed)
    is_deadlock = kind.outcome is Outcome.DEADLOCKED
    # if the run ended early, rules judge only the calls that were made, not missing calls
    problems = [
        (rule.text, problem)
        for rule in exercise.rules
        if rule.on_each_call and (problem := rule.problem(run.trace, case))
    ]
    return CaseVerdict(
        label=label_of(exercise, case),
        outcome=kind.outcome,
        broken=tuple(problem for _, problem in problems),
        message=kind.message(failed),
        drawn_message=failure.describe(with_waits=False) if is_deadlock else "",
        advice=kind.advice(failed),
        run=run,
        broken_rules=tuple(text for text, _ in problems),
    )


def _describe_joint(case: Case, joint_finding: Finding) -> str:
    return f"given {case.shown}\n{joint_finding.what}" if case.shown else joint_finding.what


def label_of(exercise: Exercise, case: Case) -> str:
    """Return a case's name: its ranks, and its difference from other cases of the same size."""
    label = re.sub(r"\B\(\) of ", "a scalar of ", case.label.replace("torch.", ""))
    return label if exercise.kind.is_alone else f"{plural(case.world_size, 'rank')}, {label}"


def _make_row(
    exercise: Exercise,
    execution: Execution,
    rank: int,
    finding: Finding | None,
    names: Sequence[str],
) -> Row:
    case = execution.case
    expected_value = value_for_rank(case.right, rank)
    # a driver's inputs and findings belong to the check; `problem` describes them in words
    has_judge = callable(expected_value) or isinstance(expected_value, AllRanks)
    has_plan = exercise.kind in {Kind.MODULE, Kind.MEASUREMENT}
    has_plan |= exercise.kind is Kind.SCRIPT and case.shown is not None
    hides_values = has_judge and has_plan
    shown_inputs = () if hides_values else case.given[rank]
    max_length = 240 if exercise.kind is Kind.LOCAL else 80
    given = _format_arguments(names, [short_value(value, max_length) for value in shown_inputs])
    given = given if case.shown is None else case.shown
    value = execution.run.values[rank]
    expected, got = (
        ("" if has_judge else _readable_text(expected_value, max_length)),
        ("" if hides_values else _readable_text(value, max_length)),
    )
    if expected == got and not has_judge:  # only digits beyond the displayed ones differ
        expected, got = short_value(expected_value, max_length), short_value(value, max_length)
    return Row(rank, given, expected, got, finding.what if finding else "")


def _format_arguments(names: Sequence[str], values: Sequence[str]) -> str:
    """Write values in a row, each with its name if there are several."""
    if len(names) != len(values) or len(values) < 2:
        return ", ".join(values)
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def _readable_text(value: Any, max_length: int) -> str:
    """Write a value with few digits. A hostile value may raise an error on any access."""
    with contextlib.suppress(Exception):
        value = round_floats(value)
    return short_value(value, max_length)
