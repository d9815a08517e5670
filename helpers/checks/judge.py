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

from helpers.checks.case import AllRanks, Case, Finding, Measured, PerRank, for_rank
from helpers.checks.compare import difference, few_digits, kind_of_value, like, same, vast_range
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.result import CaseVerdict, Outcome, Row
from helpers.ranks.failures import Deadlock, HostLost, RankDied, RankFailed, RankTimeout
from helpers.ranks.run import Run
from helpers.ranks.world import FLOOD_ERROR
from helpers.trace.events import Event
from helpers.trace.mismatch import at
from helpers.views.plain import plural
from helpers.views.values import short_value

_OUT_OF_MEMORY = re.compile(
    r"^MemoryError|can't allocate memory|std::bad_alloc|Cannot allocate memory"
)
_FLOAT32 = 1e-6
# Limit of parts in what a rank reports about itself; each part may have a quarter as many, and so on.
_MOST_PARTS = 1 << 20
# Calls that write to a tensor on each rank that makes them.
_WRITE = frozenset({"recv", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
NOTHING = "The function returns nothing. Does every path have a `return`?"
PRINTS = "The function prints, but returns nothing. Return the value instead."

# Sentences that ask for the same factor in every result.
_LARGE = "This is {n} times too large: is a division by the world size missing?"
_SMALL = "This is {n} times too small: is it divided by the world size once too often?"

BY_THE_CLOCK = (
    "This failed only on time, and the machine may have been busy. Check it again when nothing else "
    "runs."
)
# Errors that an unexpected kind of value provokes in a function that judges it.
_ODD = (
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    IndexError,
    MemoryError,
    RuntimeError,
)


# Advice on answers that need files next to the notebook, by the kind of error that ends them.
_NOT_HANDED_IN = {
    "ModuleNotFoundError": (
        "The course's environment has no such package. If the module is your own file, copy its code "
        "into a cell: only the notebook is handed in, and a check finds no other file."
    ),
    "FileNotFoundError": (
        "If this is your own file, write what the answer needs into a cell: only the notebook is "
        "handed in, and a check runs in an empty folder."
    ),
}


class Unjudged(Exception):
    """An exercise's function failed on a value that a rank returned. came: that value, in words."""

    def __init__(self, rank: int, got: Any, error: Exception) -> None:
        got = got.found if isinstance(got, Measured) else got
        # the value lacks a key that the driver always returns
        missing = isinstance(error, KeyError) and isinstance(got, dict)
        self.is_odd = missing or isinstance(error, _ODD)
        self.came = f"rank {rank} returned {kind_of_value(got)}: {short_value(got, 80)}"
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

    def findings(self) -> list[Finding | None]:
        """Return what is wrong with each rank's value, or None if it is right."""
        return [self._finding(rank) for rank in range(self.case.world_size)]

    def together(self) -> Finding | None:
        """Return what is wrong with the values of all ranks together, if each is right on its own."""
        right = self.case.right
        # if one value is wrong on its own, that explains why all of them together are wrong
        if not isinstance(right, AllRanks) or any(self.findings()):
            return None
        try:
            return _as_finding(right.together(list(self.run.values)))
        except Exception as error:
            raise Unjudged(0, self.run.values[0], error) from error

    def _finding(self, rank: int) -> Finding | None:
        case, got = self.case, self.run.values[rank]
        if vast := vast_range(got):
            return Finding(f"{vast} was returned: no answer needs that many numbers")
        wanted = for_rank(case.right, rank)
        if callable(wanted) or isinstance(wanted, AllRanks):
            if other := like(for_rank(case.like, rank), got):
                return Finding(other)
            try:
                found = wanted.own(got) if isinstance(wanted, AllRanks) else wanted(got, rank)
            except Exception as error:
                raise Unjudged(rank, got, error) from error
        else:
            found = _differs(case, wanted, got)
        if found:
            return _as_finding(found)
        if self.changed and self.changed[rank]:
            names = " and ".join(f"`{name}`" for name in self.changed[rank])
            return Finding(
                f"it modified {names} in place",
                "The caller still needs its argument unchanged. Work on a copy, such as `x.clone()`.",
            )
        return None


def _as_finding(found: Finding | str | None) -> Finding | None:
    return Finding(found) if isinstance(found, str) and found else found or None


def implausible(reported: Sequence[str], got: Any) -> Finding | None:
    """Return a finding if what a rank reports about itself cannot be a count, a time or a text."""
    for name in reported if isinstance(got, dict) else ():
        if name in got and not _can_be(got[name], _MOST_PARTS):
            what = f"it reported an impossible value for {name!r}: {short_value(got[name], 60)}"
            return Finding(what)
    return None


def _can_be(value: Any, room: int) -> bool:
    """Return whether a value is a text, a count, a time, or several of these. room: the limit of parts."""
    if isinstance(value, (list, tuple, dict)):
        parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return len(parts) <= room and all(_can_be(part, room // 4) for part in parts)
    if isinstance(value, float):
        return math.isfinite(value) and value >= 0
    if isinstance(value, int):
        # -1 stands for a timeout that was not passed, or a row that does not exist
        return -1 <= value < 1 << 60
    return value is None or isinstance(value, str)


def judge(
    exercise: Exercise,
    execution: Execution,
    others: Sequence[Execution] = (),
    passed: Sequence[Execution] = (),
    names: Sequence[str] = (),
) -> CaseVerdict:
    """Judge one case. others: more cases that went wrong, which advice must explain as well.

    passed: cases that went right, which the advised change must not make wrong. names: of the answer's
    parameters, which label the inputs for the reader.

    Raises only if the exercise's own functions do. `Unjudged` means that they failed on a returned
    value, which may be of an unexpected kind. Any other error is a fault of the check, not of the
    answer.
    """
    case, run, label = execution.case, execution.run, label_of(exercise, execution.case)
    if run.failure is not None:
        return _failed(exercise, case, run)
    findings, joint = execution.findings(), execution.together()
    # nothing outside the rank confirms these parts, so they must at least be possible
    doubts = [implausible(exercise.reported, value) for value in run.values]
    # an impossible count is a lie or a broken driver, so findings from it mean nothing
    findings = [doubt or found for doubt, found in zip(doubts, findings, strict=True)]
    # in a world of one rank, a problem of all values together is shown at the rank's own value
    if case.world_size == 1:
        findings, joint = [findings[0] or joint], None
    rules = exercise.rules
    if case.world_size == 1 and case.init and not exercise.kind.is_alone and not run.trace.calls:
        # a single rank has no rank to communicate with, and may know that from the start
        rules = ()
    problems = [(rule, problem) for rule in rules if (problem := rule.problem(run.trace, case))]
    broken = tuple(problem for _, problem in problems)
    broken_rules = tuple(rule.text for rule, _ in problems)
    if any(findings) or joint:
        # only for failures: writing down passed values takes as long as comparing them, and is never read
        rows = tuple(
            _row(exercise, execution, rank, found, names) for rank, found in enumerate(findings)
        )
        advice = advise([execution, *others], passed)
        if exercise.kind.is_hard and not advice:
            advice = _full_until_wait(run)
        # this finding concerns all ranks together, none of which is right or wrong on its own
        what = "" if joint is None else _of_all(case, joint)
        found = [each for each in (*findings, joint) if each]
        if all(each.rests_on_time for each in found) and not broken:
            what = f"{what}\n{BY_THE_CLOCK}".strip()
            return CaseVerdict(label, Outcome.TOO_SLOW, rows, broken, what, advice, run)
        return CaseVerdict(
            label, Outcome.WRONG, rows, broken, what, advice, run, broken_rules=broken_rules
        )
    if broken:
        forbidden = any(rule.forbids for rule, _ in problems)
        outcome = Outcome.FORBIDDEN if forbidden else Outcome.WRONG
        # Right values earn at most half of the points, because the rules are what the task is about. The
        # more of them are broken, the less remains of that half.
        kept = 0.0 if forbidden else (1 - (len(broken) - 1) / len(exercise.rules)) / 2
        return CaseVerdict(
            label, outcome, broken=broken, run=run, partial=kept, broken_rules=broken_rules
        )
    return CaseVerdict(label, Outcome.PASSED, run=run)


def _of_all(case: Case, joint: Finding) -> str:
    return f"given {case.shown}\n{joint.what}" if case.shown else joint.what


def label_of(exercise: Exercise, case: Case) -> str:
    """Return a case's name: its ranks, and what distinguishes it from others of its size."""
    label = re.sub(r"\B\(\) of ", "a scalar of ", case.label.replace("torch.", ""))
    return label if exercise.kind.is_alone else f"{plural(case.world_size, 'rank')}, {label}"


def _row(
    exercise: Exercise, execution: Execution, rank: int, found: Finding | None, names: Sequence[str]
) -> Row:
    case = execution.case
    wanted = for_rank(case.right, rank)
    # a driver's inputs and findings are the check's own; `problem` says them in words
    judged = callable(wanted) or isinstance(wanted, AllRanks)
    planned = exercise.kind in {Kind.MODULE, Kind.MEASUREMENT}
    planned |= exercise.kind is Kind.SCRIPT and case.shown is not None
    wordy = judged and planned
    shown = () if wordy else case.given[rank]
    most = 240 if exercise.kind is Kind.LOCAL else 80
    given = _named(names, [short_value(v, most) for v in shown])
    given = given if case.shown is None else case.shown
    value = execution.run.values[rank]
    expected, got = (
        ("" if judged else _readable(wanted, most)),
        ("" if wordy else _readable(value, most)),
    )
    if expected == got and not judged:  # only later digits differ
        expected, got = short_value(wanted, most), short_value(value, most)
    return Row(rank, given, expected, got, found.what if found else "")


def _named(names: Sequence[str], values: Sequence[str]) -> str:
    """Write values in a row, each with its name if there are several."""
    if len(names) != len(values) or len(values) < 2:
        return ", ".join(values)
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def _readable(value: Any, most: int) -> str:
    """Write a value with few digits. A hostile value may raise an error on any access."""
    with contextlib.suppress(Exception):
        value = few_digits(value)
    return short_value(value, most)


# --- advice ---------------------------------------------------------------------------------------


def advise(execution: Sequence[Execution], passed: Sequence[Execution] = ()) -> str:
    """Return the first sentence that explains every wrong rank of every wrong case, or "".

    passed: cases that went right, which must stay right with the factor that a sentence asks for.
    """
    wrong = [
        (each, rank, found)
        for each in execution
        if each.run.failure is None
        for rank, found in [
            *enumerate(each.findings()),
            (each.case.world_size - 1, each.together()),
        ]
        if found is not None
    ]
    if not wrong:
        return ""
    if all(value is None for each, *_ in wrong for value in each.run.values):
        return PRINTS if any(execution[0].run.output) else NOTHING
    # a sentence that explains one wrong rank but not another is at best half of the explanation
    first, *rest = wrong
    for words in _explanations(*first):
        if all(words in _explanations(*other) for other in rest) and not _is_refuted(words, passed):
            return first[0].case.say(words)
    return ""


def _is_refuted(words: str, passed: Sequence[Execution]) -> bool:
    """Return whether a sentence asks for a factor that would make a right result wrong."""
    return words in {_LARGE, _SMALL} and any(
        _is_not_zero(value)
        for each in passed
        if each.case.world_size > 1
        for value in each.run.values
    )


def _is_not_zero(value: Any) -> bool:
    try:
        return bool(torch.as_tensor(value).any())
    except Exception:  # a hostile value, or a kind that no factor changes
        return False


def _explanations(execution: Execution, rank: int, found: Finding) -> list[str]:
    """Return all sentences that explain what one rank returned, the exercise's own first."""
    advice = (found.advice,) if isinstance(found.advice, str) else found.advice
    words = [*filter(None, advice)]
    # a hostile value may raise an error on any access; then there is no advice
    with contextlib.suppress(Exception):
        words += _usual(execution.case, rank, execution.run.values[rank])
    return words


def _differs(case: Case, wanted: Any, got: Any) -> str:
    """Compare two values. A value that cannot even be compared is wrong, and raises no error."""
    try:
        found = difference(wanted, got, case.tolerance, scale=case.scale)
        return re.sub(r"^\[(\d+)\]", lambda m: _part(case, int(m[1])), found)
    except Exception as error:
        return f"it cannot be compared ({type(error).__name__})"


def _part(case: Case, number: int) -> str:
    return case.parts[number] if number < len(case.parts) else f"[{number}]"


def _usual(case: Case, rank: int, got: Any) -> Iterator[str]:
    """Yield simple relations between a wrong value and the right one: facts in any exercise."""
    right = for_rank(case.right, rank)
    if callable(right) or isinstance(right, AllRanks):
        return
    given = case.given[rank]
    if any(same(value, got, 0) for value in given if isinstance(value, torch.Tensor)):
        yield "This is the rank's argument, unchanged. Return what was received or computed."
    if got is None:
        yield "This rank returned None. Does every path have a `return`?"
    if isinstance(case.right, PerRank):
        for other in range(case.world_size):
            if other != rank and same(case.right.values[other], got, case.tolerance):
                yield "This is the right value of a different rank. Which rank are you reading from?"
                break
    yield from _related(case, right, got)


def _related(case: Case, right: Any, got: Any) -> Iterator[str]:
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
    one, other = torch.as_tensor(right), torch.as_tensor(got)
    if one.shape != other.shape or not one.numel():
        return
    if one.dtype != other.dtype and torch.equal(one.double(), other.double()):
        yield "The numbers are right, but the dtype is wrong."
    if one.dtype == other.dtype and one.dtype in {torch.float64, torch.int64, torch.int32}:
        if torch.equal(one.float().to(one.dtype), other):
            yield "This is the right value rounded to float32. Keep the dtype of the arguments."
        elif one.is_floating_point() and same(one, other, _FLOAT32):
            yield "This agrees with the right value to about 7 digits, the precision of float32."
    is_whole = not one.is_floating_point()
    one, other = one.double(), other.double()
    if case.world_size > 1:
        n = case.world_size
        for factor, words in ((n, _LARGE), (1 / n, _SMALL)):
            # a mean of whole numbers is rounded
            whole = other.abs().max() > 8 and bool(((one * factor - other).abs() <= 1).all())
            if same(one * factor, other, 1e-4) or (whole and is_whole):
                yield words
    if one.abs().sum() > 0 and same(-one, other, 1e-6):
        yield "The sign is wrong."
    if one.numel() > 1:
        if one.dim() and same(one.flatten().flip(0), other.flatten(), 0):
            yield "These are the right elements in reverse order."
        if same(one.flatten().sort().values, other.flatten().sort().values, 0):
            yield "The elements are right, but in the wrong order."


# --- runs that did not end well -------------------------------------------------------------------


def _failed(exercise: Exercise, case: Case, run: Run) -> CaseVerdict:
    failure = run.failure
    outcome, advice = Outcome.CRASHED, ""
    if isinstance(failure, RankFailed) and is_the_stub(failure, exercise):
        advice = "Replace `raise NotImplementedError(...)` with your own lines."
        outcome = Outcome.NOT_ATTEMPTED
    elif isinstance(failure, RankFailed) and _is_other_stub(failure):
        number = _stub_number(failure.error.message)
        advice = (
            f"Your answer needs your answer to Exercise {number}, which is not written yet. Write that "
            "one first."
        )
    elif isinstance(failure, Deadlock):
        outcome = Outcome.DEADLOCKED
        advice = _unwaited(run) if failure.diagnosis.kind == "never_waited" else ""
    elif isinstance(failure, RankTimeout):
        outcome = Outcome.TOO_SLOW if failure.by_the_clock else Outcome.TIMED_OUT
        advice = _unwaited(run) or _at_different_lines(failure)
    elif isinstance(failure, RankFailed) and failure.error.kind == FLOOD_ERROR:
        outcome, advice = (
            Outcome.FLOODED,
            "It printed too much. Is there an endless loop that prints?",
        )
    elif isinstance(failure, RankFailed) and _OUT_OF_MEMORY.search(str(failure.error)):
        outcome = Outcome.OUT_OF_MEMORY
        advice = "It ran out of memory. Look for a tensor that is too large."
    elif isinstance(failure, RankFailed) and failure.error.kind in _NOT_HANDED_IN:
        advice = _NOT_HANDED_IN[failure.error.kind]
    elif isinstance(failure, HostLost):
        outcome, advice = Outcome.FAULT, "This says nothing about your answer. Check it again."
    elif isinstance(failure, RankDied) and failure.signal == "SIGXCPU":
        outcome = Outcome.TIMED_OUT
        advice = "A rank exceeded its limit of CPU time."
    # the exercise's own advice knows the task, so it comes before general advice
    if outcome is not Outcome.NOT_ATTEMPTED:
        words = (each.words for each in exercise.failed if each.fits(case, run))
        advice = next(words, advice)
    message = str(failure)
    if case.world_size == 1 and (exercise.kind.is_alone or not case.init):
        message = message.replace("rank 0 raised ", "your function raised ", 1)
    # its last line mentions launch(timeout=...), which an answer to an exercise does not call
    if outcome in {Outcome.TIMED_OUT, Outcome.TOO_SLOW}:
        message = message.rpartition("\n")[0]
    if outcome is Outcome.TOO_SLOW:
        message = f"{message}\n{BY_THE_CLOCK}"
    # if the run ended early, rules judge only calls that were made, not missing ones
    problems = [
        (rule.text, problem)
        for rule in exercise.rules
        if rule.on_each_call and (problem := rule.problem(run.trace, case))
    ]
    return CaseVerdict(
        label_of(exercise, case),
        outcome,
        broken=tuple(problem for _, problem in problems),
        message=message,
        advice=case.say(advice),
        run=run,
        broken_rules=tuple(text for text, _ in problems),
    )


def is_the_stub(failure: RankFailed, exercise: Exercise) -> bool:
    """Return whether an exercise's own stub was called.

    The answer may also call the stub of an earlier exercise, or raise torch's own NotImplementedError.
    """
    kind, message = failure.error.kind, failure.error.message
    if kind != "NotImplementedError":
        return False
    own = f"Exercise {exercise.number}" if exercise.number else "Exercise "
    return not message or message.startswith(own)


def _is_other_stub(failure: RankFailed) -> bool:
    error = failure.error
    return error.kind == "NotImplementedError" and bool(_stub_number(error.message))


def _stub_number(message: str) -> str:
    """Return the number of the exercise whose stub raised a message, or "" if it names none."""
    found = re.match(r"Exercise (\d+\.\d+)\b", message)
    return found[1] if found else ""


def _at_different_lines(failure: RankTimeout) -> str:
    """Return a sentence if a script's ranks were blocked at lines that cannot all be the same collective."""
    if len({wait.state for wait in failure.waits if wait.event is None}) < 2:
        return ""
    return (
        "The ranks are blocked at different lines. A collective must be called by all ranks: does "
        "each rank make the same calls in the same order?"
    )


def _full_until_wait(run: Run) -> str:
    """Return the name of a call that writes to a tensor and was never waited for, or ""."""
    event = _never_waited_for(run, _WRITE)
    if event is None:
        return ""
    peer = "" if event.peer is None else f" from rank {event.peer}"
    return (
        f"Rank {event.rank} never waits for its {event.call}{peer}{at(event)}. Do not read the tensor "
        "that the call writes to before wait() returns: until then, the check fills it with NaN (or "
        "the largest integer)."
    )


def _unwaited(run: Run) -> str:
    """Return the name of a transfer that was never waited for and was not seen to end, or ""."""
    event = _never_waited_for(run)
    if event is None:
        return ""
    to = "to" if event.op == "send" else "from"
    peer = "" if event.peer is None else f" {to} rank {event.peer}"
    return (
        f"Rank {event.rank} never waits for its {event.call}{peer}{at(event)}. With gloo, a transfer "
        "is complete only when wait() has returned, and without wait() it may never happen. Keep the "
        "Work that the call returns, and call its wait()."
    )


def _never_waited_for(run: Run, ops: Container[str] | None = None) -> Event | None:
    unwaited = (e for e in run.trace.calls if e.asynchronous and e.wait_ns is e.end_ns is None)
    return next((event for event in unwaited if ops is None or event.op in ops), None)
