"""Compare what the ranks of one case returned with the right values, and return a verdict with true advice.

    values: right? -> which relation to the right value explains every wrong rank of all cases? -> advice
    trace:  rules  -> facts, shown next to it

Advice is a sentence that explains everything that is wrong. Without such a sentence, only the difference is
shown.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.check_result import CaseVerdict, Outcome, Row
from helpers.checks.answer_shape import NO_SHAPE, AnswerShape
from helpers.checks.case import AllRanks, Case, Finding, Measured, PerRank, value_for_rank
from helpers.checks.compare import (
    describe_kind,
    difference,
    find_huge_range,
    kind_problem,
    round_floats,
    same,
)
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.limits import exceeded_limit, is_ended_by_limit
from helpers.checks.missing_files import missing_file_advice
from helpers.ranks.failures import Deadlock, HostLost, RankFailed, RankTimeout
from helpers.ranks.run import Run
from helpers.trace.events import Event
from helpers.trace.mismatch import at
from helpers.views.plain import plural
from helpers.views.values import short_value

_FLOAT32_TOLERANCE = 1e-6
# Limit of parts in what a rank reports about itself; each part may have a quarter as many, and so on.
_MAX_PARTS = 1 << 20
# Calls that write to a tensor on each rank that makes them.
_WRITING_OPS = frozenset({"recv", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
NOTHING_RETURNED_ADVICE = "The function returns nothing. Does every path have a `return`?"
PRINTED_ONLY_ADVICE = "The function prints, but returns nothing. Return the value instead."
_RESULT_OF_CALL_ADVICE = (
    "`{call}` returns None: it writes into a tensor that you pass. Return that tensor, not the result of the "
    "call."
)

# Sentences that ask for the same factor in every result.
_TOO_LARGE_ADVICE = "This is {n} times too large: is a division by the world size missing?"
_TOO_SMALL_ADVICE = "This is {n} times too small: is it divided by the world size once too often?"

TOO_SLOW_ADVICE = (
    "This failed only on time, and the machine may have been busy. Check it again when nothing else "
    "runs."
)
# Errors that an unexpected kind of value provokes in a function that judges it.
_UNEXPECTED_KIND_ERRORS = (
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    IndexError,
    MemoryError,
    RuntimeError,
)


class JudgeFailed(Exception):
    """An exercise's function failed on a value that a rank returned. returned_value: the value, in words."""

    def __init__(self, rank: int, got: Any, error: Exception) -> None:
        got = got.found if isinstance(got, Measured) else got
        # the value lacks a key that the driver always returns
        missing = isinstance(error, KeyError) and isinstance(got, dict)
        self.is_odd = missing or isinstance(error, _UNEXPECTED_KIND_ERRORS)
        self.returned_value = f"rank {rank} returned {describe_kind(got)}: {short_value(got, 80)}"
        super().__init__(f"{type(error).__name__}: {str(error)[:200]}")


@dataclass(frozen=True)
class Execution:
    """One case and what its ranks did.

    changed[r]: the names of the inputs that rank r has changed. number: of the turn, as in `worlds.Turn`.
    """

    case: Case
    run: Run
    changed: Sequence[Sequence[str]] = ()
    number: int = 0

    def all_findings(self) -> list[Finding | None]:
        """Return what is wrong with each rank's value, or None if it is right."""
        return [self._rank_finding(rank) for rank in range(self.case.world_size)]

    def joint_finding(self) -> Finding | None:
        """Return what is wrong with the values of all ranks together, if each is right on its own."""
        right = self.case.right
        # if one value is wrong on its own, that explains why all of them together are wrong
        if not isinstance(right, AllRanks) or any(self.all_findings()):
            return None
        try:
            return _to_finding(right.judge_all(list(self.run.values)))
        except Exception as error:
            raise JudgeFailed(0, self.run.values[0], error) from error

    def _rank_finding(self, rank: int) -> Finding | None:
        case, got = self.case, self.run.values[rank]
        if range_text := find_huge_range(got):
            return Finding(f"{range_text} was returned: no answer needs that many numbers")
        expected = value_for_rank(case.right, rank)
        if callable(expected) or isinstance(expected, AllRanks):
            if kind_text := kind_problem(value_for_rank(case.like, rank), got):
                return Finding(kind_text)
            try:
                problem = (
                    expected.judge_rank(got)
                    if isinstance(expected, AllRanks)
                    else expected(got, rank)
                )
            except Exception as error:
                raise JudgeFailed(rank, got, error) from error
        else:
            problem = _describe_difference(case, expected, got)
        if problem:
            return _to_finding(problem)
        if self.changed and self.changed[rank]:
            names = " and ".join(f"`{name}`" for name in self.changed[rank])
            return Finding(
                f"it modified {names} in place",
                "The caller still needs its argument unchanged. Work on a copy, such as `x.clone()`.",
            )
        return None


def _to_finding(problem: Finding | str | None) -> Finding | None:
    return Finding(problem) if isinstance(problem, str) and problem else problem or None


def find_impossible_value(reported: Sequence[str], got: Any) -> Finding | None:
    """Return a finding if what a rank reports about itself cannot be a count, a time or a text."""
    for name in reported if isinstance(got, dict) else ():
        if name in got and not _is_plausible(got[name], _MAX_PARTS):
            text = f"it reported an impossible value for {name!r}: {short_value(got[name], 60)}"
            return Finding(text)
    return None


def _is_plausible(value: Any, max_parts: int) -> bool:
    """Return whether a value is a text, a count, a time, or several of these. max_parts: their limit."""
    if isinstance(value, (list, tuple, dict)):
        parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return len(parts) <= max_parts and all(
            _is_plausible(part, max_parts // 4) for part in parts
        )
    if isinstance(value, float):
        return math.isfinite(value) and value >= 0
    if isinstance(value, int):
        # -1 stands for a timeout that was not passed, or a row that does not exist
        return -1 <= value < 1 << 60
    return value is None or isinstance(value, str)


def judge(
    exercise: Exercise,
    execution: Execution,
    other_failures: Sequence[Execution] = (),
    passed_cases: Sequence[Execution] = (),
    shape: AnswerShape = NO_SHAPE,
) -> CaseVerdict:
    """Judge one case. other_failures: more cases that went wrong, which advice must explain as well.

    passed_cases: cases that went right, which the advised change must not make wrong. shape: of the answer,
    whose parameters label the inputs for the reader.

    Raises only if the exercise's own functions do. `JudgeFailed` means that they failed on a returned
    value, which may be of an unexpected kind. Any other error is a fault of the check, not of the
    answer.
    """
    case, run, label = execution.case, execution.run, label_of(exercise, execution.case)
    if run.failure is not None:
        return _judge_failure(exercise, case, run)
    all_findings, joint_finding = execution.all_findings(), execution.joint_finding()
    # nothing outside the rank confirms these parts, so they must at least be possible
    impossible = [find_impossible_value(exercise.reported, value) for value in run.values]
    # an impossible count is a lie or a broken driver, so findings from it mean nothing
    all_findings = [
        impossible_value or found
        for impossible_value, found in zip(impossible, all_findings, strict=True)
    ]
    # in a world of one rank, a problem of all values together is shown at the rank's own value
    if case.world_size == 1:
        all_findings, joint_finding = [all_findings[0] or joint_finding], None
    rules = exercise.rules
    if case.world_size == 1 and case.init and not exercise.kind.is_alone and not run.trace.calls:
        # a single rank has no rank to communicate with, and may know that from the start
        rules = ()
    problems = [(rule, problem) for rule in rules if (problem := rule.problem(run.trace, case))]
    broken = tuple(problem for _, problem in problems)
    broken_rules = tuple(rule.text for rule, _ in problems)
    if any(all_findings) or joint_finding:
        # only for failures: writing down passed values takes as long as comparing them, and is never read
        rows = tuple(
            _make_row(exercise, execution, rank, found, shape.parameters)
            for rank, found in enumerate(all_findings)
        )
        advice = advise([execution, *other_failures], passed_cases, shape)
        if exercise.kind.is_adversarial and not advice:
            advice = _missing_wait_advice(run)
        # this finding concerns all ranks together, none of which is right or wrong on its own
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
        # Right values earn at most half of the points, because the rules are what the task is about. The
        # more of them are broken, the less remains of that half.
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


def _describe_joint(case: Case, joint_finding: Finding) -> str:
    return f"given {case.shown}\n{joint_finding.what}" if case.shown else joint_finding.what


def label_of(exercise: Exercise, case: Case) -> str:
    """Return a case's name: its ranks, and what distinguishes it from others of its size."""
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
    # a driver's inputs and findings are the check's own; `problem` says them in words
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
    if expected == got and not has_judge:  # only later digits differ
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


# --- advice ---------------------------------------------------------------------------------------


def advise(
    executions: Sequence[Execution],
    passed_cases: Sequence[Execution] = (),
    shape: AnswerShape = NO_SHAPE,
) -> str:
    """Return the first sentence that explains every wrong rank of every wrong case, or "".

    passed_cases: cases that went right, which must stay right with the factor that a sentence asks for.
    shape: of the answer. Only a path without a `return`, or one that returns what a call to torch.distributed
    returned, supports advice on a missing value, because None is the right value of some cases.
    """
    wrong = [
        (execution, rank, finding)
        for execution in executions
        if execution.run.failure is None
        for rank, finding in [
            *enumerate(execution.all_findings()),
            (execution.case.world_size - 1, execution.joint_finding()),
        ]
        if finding is not None
    ]
    if not wrong:
        return ""
    returned = [value for execution, *_ in wrong for value in execution.run.values]
    if shape.returned_call and all(value is None for value in returned):
        return _RESULT_OF_CALL_ADVICE.format(call=shape.returned_call)
    if shape.may_return_nothing and all(value is None for value in returned):
        return PRINTED_ONLY_ADVICE if any(executions[0].run.output) else NOTHING_RETURNED_ADVICE
    # a sentence that explains one wrong rank but not another is at best half of the explanation
    first, *others = wrong
    for words in _explain_value(*first, shape):
        if all(
            words in _explain_value(*other, shape) for other in others
        ) and not _is_factor_refuted(words, passed_cases):
            return first[0].case.fill_facts(words)
    return ""


def _is_factor_refuted(sentence: str, passed_cases: Sequence[Execution]) -> bool:
    """Return whether a sentence asks for a factor that would make a right result wrong."""
    return sentence in {_TOO_LARGE_ADVICE, _TOO_SMALL_ADVICE} and any(
        _has_nonzero(value)
        for execution in passed_cases
        if execution.case.world_size > 1
        for value in execution.run.values
    )


def _has_nonzero(value: Any) -> bool:
    try:
        return bool(torch.as_tensor(value).any())
    except Exception:  # a hostile value, or a kind that no factor changes
        return False


def _explain_value(
    execution: Execution, rank: int, finding: Finding, shape: AnswerShape
) -> list[str]:
    """Return all sentences that explain what one rank returned, the exercise's own first."""
    advice = (finding.advice,) if isinstance(finding.advice, str) else finding.advice
    words = [*filter(None, advice)]
    # a hostile value may raise an error on any access; then there is no advice
    with contextlib.suppress(Exception):
        words += _find_relations(execution.case, rank, execution.run.values[rank], shape)
    return words


def _describe_difference(case: Case, expected: Any, got: Any) -> str:
    """Compare two values. A value that cannot even be compared is wrong, and raises no error."""
    try:
        text = difference(expected, got, case.tolerance, scale=case.scale)
        return re.sub(r"^\[(\d+)\]", lambda m: _part_name(case, int(m[1])), text)
    except Exception as error:
        return f"it cannot be compared ({type(error).__name__})"


def _part_name(case: Case, number: int) -> str:
    return case.parts[number] if number < len(case.parts) else f"[{number}]"


def _find_relations(case: Case, rank: int, got: Any, shape: AnswerShape) -> Iterator[str]:
    """Yield simple relations between a wrong value and the right one: facts in any exercise."""
    right = value_for_rank(case.right, rank)
    if callable(right) or isinstance(right, AllRanks):
        return
    given = case.given[rank]
    if any(same(value, got, 0) for value in given if isinstance(value, torch.Tensor)):
        yield "This is the rank's argument, unchanged. Return what was received or computed."
    if got is None and shape.may_return_nothing:
        yield "This rank returned None. Does every path have a `return`?"
    if isinstance(case.right, PerRank):
        for other in range(case.world_size):
            if other != rank and same(case.right.values[other], got, case.tolerance):
                yield "This is the right value of a different rank. Which rank are you reading from?"
                break
    yield from _find_value_relations(case, right, got)


def _find_value_relations(case: Case, right: Any, got: Any) -> Iterator[str]:
    if isinstance(right, torch.Tensor) and not isinstance(got, torch.Tensor):
        if got is True:
            yield (
                "This is what `wait()` returns; the data is in the tensor that you passed to the call."
            )
        if isinstance(got, (list, tuple)) and right.dim() == 1 and same(right.tolist(), list(got)):
            yield "The values are right, but they are not in a tensor. Return a tensor."
        return
    if isinstance(right, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(got) == len(right) and sorted(map(repr, right)) == sorted(map(repr, got)):
            yield "The elements are right, but in the wrong order."
        return
    if type(got) is not type(right) or isinstance(right, bool):
        return
    # the relations below concern numbers, and a number is compared like a tensor of one element
    if not isinstance(right, (int, float, torch.Tensor)):
        return
    expected, returned = torch.as_tensor(right), torch.as_tensor(got)
    if expected.shape != returned.shape or not expected.numel():
        return
    if expected.dtype != returned.dtype and torch.equal(expected.double(), returned.double()):
        yield "The numbers are right, but the dtype is wrong."
    if expected.dtype == returned.dtype and expected.dtype in {
        torch.float64,
        torch.int64,
        torch.int32,
    }:
        if torch.equal(expected.float().to(expected.dtype), returned):
            yield "This is the right value rounded to float32. Keep the dtype of the arguments."
        elif expected.is_floating_point() and same(expected, returned, _FLOAT32_TOLERANCE):
            yield "This agrees with the right value to about 7 digits, the precision of float32."
    is_whole = not expected.is_floating_point()
    expected, returned = expected.double(), returned.double()
    if case.world_size > 1:
        world_size = case.world_size
        for factor, words in ((world_size, _TOO_LARGE_ADVICE), (1 / world_size, _TOO_SMALL_ADVICE)):
            # a mean of whole numbers is rounded
            is_rounded = returned.abs().max() > 8 and bool(
                ((expected * factor - returned).abs() <= 1).all()
            )
            if same(expected * factor, returned, 1e-4) or (is_rounded and is_whole):
                yield words
    if expected.abs().sum() > 0 and same(-expected, returned, 1e-6):
        yield "The sign is wrong."
    if expected.numel() > 1:
        if expected.dim() and same(expected.flatten().flip(0), returned.flatten(), 0):
            yield "These are the right elements in reverse order."
        if same(expected.flatten().sort().values, returned.flatten().sort().values, 0):
            yield "The elements are right, but in the wrong order."


# --- runs that did not end well -------------------------------------------------------------------


def _judge_failure(exercise: Exercise, case: Case, run: Run) -> CaseVerdict:
    failure = run.failure
    assert failure is not None
    outcome, advice = Outcome.CRASHED, ""
    if isinstance(failure, RankFailed) and is_own_stub(failure, exercise):
        advice = "Replace `raise NotImplementedError(...)` with your own lines."
        outcome = Outcome.NOT_ATTEMPTED
    elif isinstance(failure, RankFailed) and _is_stub_of_other(failure):
        number = _stub_number(failure.error.message)
        advice = (
            f"Your answer needs your answer to Exercise {number}, which is not written yet. Write that "
            "one first."
        )
    elif isinstance(failure, Deadlock):
        outcome = Outcome.DEADLOCKED
        advice = (
            _missing_transfer_wait_advice(run) if failure.diagnosis.kind == "never_waited" else ""
        )
    elif isinstance(failure, RankTimeout):
        outcome = Outcome.TOO_SLOW if failure.by_the_clock else Outcome.TIMED_OUT
        advice = _missing_transfer_wait_advice(run) or _different_lines_advice(failure)
    elif (limit := exceeded_limit(failure)) is not None:
        outcome, advice = limit.outcome, limit.advice
    elif isinstance(failure, RankFailed):
        advice = missing_file_advice(failure)
    elif isinstance(failure, HostLost):
        outcome, advice = Outcome.FAULT, "This says nothing about your answer. Check it again."
    # the exercise's own advice knows the task, so it comes before general advice
    if outcome is not Outcome.NOT_ATTEMPTED and not is_ended_by_limit(failure):
        words = (
            advice_entry.advice
            for advice_entry in exercise.failed
            if advice_entry.applies_to(case, run)
        )
        advice = next(words, advice)
    is_alone = case.world_size == 1 and (exercise.kind.is_alone or not case.init)
    message = failure.describe(is_alone=is_alone, with_launch_hint=False)
    if outcome is Outcome.TOO_SLOW:
        message = f"{message}\n{TOO_SLOW_ADVICE}"
    # if the run ended early, rules judge only calls that were made, not missing ones
    problems = [
        (rule.text, problem)
        for rule in exercise.rules
        if rule.on_each_call and (problem := rule.problem(run.trace, case))
    ]
    return CaseVerdict(
        label=label_of(exercise, case),
        outcome=outcome,
        broken=tuple(problem for _, problem in problems),
        message=message,
        drawn_message=failure.describe(with_waits=False) if outcome is Outcome.DEADLOCKED else "",
        advice=case.fill_facts(advice),
        run=run,
        broken_rules=tuple(text for text, _ in problems),
    )


def is_own_stub(failure: RankFailed, exercise: Exercise) -> bool:
    """Return whether an exercise's own stub was called.

    The answer may also call the stub of an earlier exercise, or raise torch's own NotImplementedError.
    """
    kind, message = failure.error.kind, failure.error.message
    if kind != "NotImplementedError":
        return False
    own_prefix = f"Exercise {exercise.number}" if exercise.number else "Exercise "
    return not message or message.startswith(own_prefix)


def _is_stub_of_other(failure: RankFailed) -> bool:
    error = failure.error
    return error.kind == "NotImplementedError" and bool(_stub_number(error.message))


def _stub_number(message: str) -> str:
    """Return the number of the exercise whose stub raised a message, or "" if it names none."""
    match = re.match(r"Exercise (\d+\.\d+)\b", message)
    return match[1] if match else ""


def _different_lines_advice(failure: RankTimeout) -> str:
    """Return a sentence if a script's ranks were blocked at lines that cannot all be the same collective."""
    if len({wait.state for wait in failure.waits if wait.event is None}) < 2:
        return ""
    return (
        "The ranks are blocked at different lines. A collective must be called by all ranks: does "
        "each rank make the same calls in the same order?"
    )


def _missing_wait_advice(run: Run) -> str:
    """Return the name of a call that writes to a tensor and was never waited for, or ""."""
    event = _find_unwaited_call(run, _WRITING_OPS)
    if event is None:
        return ""
    peer = "" if event.peer is None else f" from rank {event.peer}"
    return (
        f"Rank {event.rank} never waits for its {event.call}{peer}{at(event)}. Do not read the tensor "
        "that the call writes to before wait() returns: until then, the check fills it with NaN (or "
        "the largest integer)."
    )


def _missing_transfer_wait_advice(run: Run) -> str:
    """Return the name of a transfer that was never waited for and was not seen to end, or ""."""
    event = _find_unwaited_call(run)
    if event is None:
        return ""
    preposition = "to" if event.op == "send" else "from"
    peer = "" if event.peer is None else f" {preposition} rank {event.peer}"
    return (
        f"Rank {event.rank} never waits for its {event.call}{peer}{at(event)}. With gloo, a transfer "
        "is complete only when wait() has returned, and without wait() it may never happen. Keep the "
        "Work that the call returns, and call its wait()."
    )


def _find_unwaited_call(run: Run, ops: Container[str] | None = None) -> Event | None:
    unwaited = (
        event
        for event in run.trace.calls
        if event.asynchronous and event.wait_ns is event.end_ns is None
    )
    return next((event for event in unwaited if ops is None or event.op in ops), None)
