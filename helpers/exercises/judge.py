"""What the ranks of one case gave back, against what they had to: a verdict with its first advice."""

from __future__ import annotations

import re
from typing import Any

import torch

from helpers.checks.result import CaseVerdict, Outcome, Row
from helpers.exercises.compare import difference
from helpers.exercises.look_at_time import look_at_time, look_at_unwaited
from helpers.exercises.model import Case, Exercise, Kind
from helpers.ranks.failures import Deadlock, RankDied, RankFailed, RankTimeout
from helpers.ranks.run import Run
from helpers.ranks.world import FLOOD
from helpers.views.values import short_value

_WITHOUT_RANKS = {Kind.LOCAL, Kind.JUDGEMENT, Kind.MEASUREMENT}


_OUT_OF_MEMORY = re.compile(
    r"^MemoryError|can't allocate memory|std::bad_alloc|Cannot allocate memory"
)


def judge(exercise: Exercise, case: Case, run: Run) -> CaseVerdict:
    """Judge one case. Never raises on account of what the ranks sent."""
    if run.failure is not None:
        return _failed(exercise, case, run)
    rows = _rows(exercise, case, run)
    wrong = case.judge(run) if case.judge is not None else ""
    broken, forbidden = _broken(exercise, case, run)
    label = case.label
    if wrong or any(row.problem for row in rows):
        advice = _first(exercise, case, run) or _advice(case, run, rows)
        return CaseVerdict(label, Outcome.WRONG, rows, broken, wrong, advice, run)
    if broken:
        outcome = Outcome.FORBIDDEN if forbidden else Outcome.WRONG
        kept = 0.0 if forbidden else 1 - len(broken) / (1 + len(exercise.rules))
        return CaseVerdict(label, outcome, rows, broken, run=run, partial=kept)
    return CaseVerdict(label, Outcome.PASSED, rows, run=run)


def _failed(exercise: Exercise, case: Case, run: Run) -> CaseVerdict:
    failure = run.failure
    outcome, advice = Outcome.CRASHED, ""
    if isinstance(failure, RankFailed) and _is_the_stub(failure):
        outcome = Outcome.NOT_ATTEMPTED
        advice = "Replace `raise NotImplementedError(...)` with your own lines."
    elif isinstance(failure, Deadlock):
        outcome = Outcome.DEADLOCKED
        advice = (
            "`from helpers import wait_graph`; wait_graph(result.run) draws who waits for whom."
        )
        if failure.diagnosis.kind == "never_waited":
            advice = look_at_unwaited(run) or advice
    elif isinstance(failure, RankTimeout):
        outcome = Outcome.TIMED_OUT
        advice = look_at_time(run)
    elif isinstance(failure, RankFailed) and failure.error.kind == FLOOD:
        outcome, advice = Outcome.FLOODED, "Print less: a loop that prints seems not to end."
    elif isinstance(failure, RankFailed) and _OUT_OF_MEMORY.search(str(failure.error)):
        outcome, advice = (
            Outcome.OUT_OF_MEMORY,
            "No exercise needs so much: which tensor is too large?",
        )
    elif isinstance(failure, RankDied) and failure.signal == "SIGXCPU":
        outcome, advice = (
            Outcome.TIMED_OUT,
            "A rank has used all of the processor time that there is.",
        )
    if exercise.look is not None and outcome is not Outcome.NOT_ATTEMPTED:
        advice = exercise.look(case, run) or advice
    message = str(failure)
    if exercise.kind in _WITHOUT_RANKS or (case.world_size == 1 and not case.init):
        message = message.replace("rank 0 raised ", "your function raised ", 1)
    # its last line speaks of launch(timeout=...), which whoever answers an exercise does not call
    if outcome is Outcome.TIMED_OUT:
        message = message.rpartition("\n")[0]
    return CaseVerdict(case.label, outcome, message=message, advice=advice, run=run)


def _is_the_stub(failure: RankFailed) -> bool:
    """Tell a stub that was reached from a NotImplementedError of torch, which has words of its own."""
    kind, message = failure.error.kind, failure.error.message
    return kind == "NotImplementedError" and (not message or message.startswith("Exercise "))


def _first(exercise: Exercise, case: Case, run: Run) -> str:
    """Give what has to be mended before the values are worth a look, else the exercise's own look."""
    for rule in exercise.rules:
        if (first := getattr(rule, "first", "")) and rule.problem(run.trace, case):
            return str(first)
    return exercise.look(case, run) if exercise.look else ""


def _broken(exercise: Exercise, case: Case, run: Run) -> tuple[tuple[str, ...], bool]:
    problems = [(rule.problem(run.trace, case), rule.forbids) for rule in exercise.rules]
    broken = tuple(problem for problem, _ in problems if problem)
    return broken, any(problem and forbids for problem, forbids in problems)


def _rows(exercise: Exercise, case: Case, run: Run) -> tuple[Row, ...]:
    rows = []
    for rank in range(case.world_size):
        # a programme's inputs and findings are the check's own; `problem` says them in words
        own = exercise.kind in {Kind.MODULE, Kind.MEASUREMENT}
        wordy = own and _wants_words(case, rank)
        shown = case.inputs[rank] if case.inputs and not wordy else ()
        plain = ", ".join(short_value(v, 80) for v in shown)
        given = plain if case.given is None else case.given
        got, expected, problem = run.values[rank], "", ""
        if case.expected is not None:
            wanted = case.expected[rank]
            problem = difference(wanted, got, case.tolerance)
            expected = "" if callable(wanted) else short_value(wanted, 80)
        rows.append(Row(rank, given, expected, "" if wordy else short_value(got, 80), problem))
    return tuple(rows)


def _wants_words(case: Case, rank: int) -> bool:
    return case.expected is not None and callable(case.expected[rank])


def _advice(case: Case, run: Run, rows: tuple[Row, ...]) -> str:
    """Give the first thing to look at, from what is right and what is not."""
    if case.expected is None:
        return ""
    bad = [row.rank for row in rows if row.problem]
    expected, values = case.expected, run.values
    missing = [r for r in bad if values[r] is None]
    if len(missing) == case.world_size:
        if any(run.output):
            return "The function prints, but returns nothing: the value must come back by `return`."
        return "The function returns nothing: is there a `return` on every path?"
    if missing:
        returns = "returns" if len(missing) == 1 else "return"
        return f"{_ranks(missing)} {returns} nothing: every rank must return its value."
    comparable = [r for r in bad if not callable(expected[r])]
    for rank in comparable:
        if reason := _relation(case, expected[rank], values[rank], rank):
            return f"Rank {rank}: {reason}"
    if comparable and (swapped := _somebody_elses(case, run, bad)):
        return swapped
    good = [row.rank for row in rows if not row.problem and expected[row.rank] is not None]
    if good and bad:
        are = "is" if len(good) == 1 else "are"
        and_are = "is" if len(bad) == 1 else "are"
        bad_ones = _ranks(bad)[0].lower() + _ranks(bad)[1:]
        return f"{_ranks(good)} {are} right, {bad_ones} {and_are} not: what do they do differently?"
    if any(isinstance(value, torch.Tensor) for given in case.inputs for value in given):
        return "Follow one element by hand, from the rank that has it to the rank that needs it."
    return ""


def _relation(case: Case, expected: Any, got: Any, rank: int) -> str:
    """Name a simple relation between a wrong value and the right one."""
    given = case.inputs[rank] if case.inputs else ()
    if any(difference(value, got) == "" for value in given if isinstance(value, torch.Tensor)):
        return "this is what it was given, unchanged."
    if isinstance(expected, torch.Tensor) and not isinstance(got, torch.Tensor):
        return _not_a_tensor(expected, got)
    if type(got) is not type(expected):
        return ""
    if isinstance(expected, bool) or not isinstance(expected, (int, float, torch.Tensor)):
        if isinstance(expected, (list, tuple)) and sorted(map(repr, expected)) == sorted(
            map(repr, got)
        ):
            return "the right parts, in another order."
        return ""
    one, other = torch.as_tensor(expected).double(), torch.as_tensor(got).double()
    if one.shape != other.shape or not one.numel():
        return ""
    if one.dim() and torch.equal(one, other):
        return f"the right numbers, but its dtype is {_dtype(got)}, not {_dtype(expected)}."
    n = case.world_size
    for factor, words in (
        (n, f"{n} times too large: is a division by the world size missing?"),
        (1 / n, f"{n} times too small: is it divided by the world size once too often?"),
        (-1, "the sign is the other way round."),
    ):
        if n > 1 and one.abs().sum() > 0 and torch.allclose(other, one * factor, rtol=1e-4):
            return words
    if one.dim() and one.numel() > 1 and torch.equal(one.flatten().flip(0), other.flatten()):
        return "the right elements, in reverse order."
    if one.numel() > 1 and torch.equal(one.flatten().sort().values, other.flatten().sort().values):
        return "the right elements, in another order."
    return ""


def _not_a_tensor(expected: torch.Tensor, got: Any) -> str:
    if got is True:
        return "this is what `wait()` returns; the data is in the tensor that you gave to the call."
    if isinstance(got, (list, tuple)) and difference(expected.tolist(), list(got)) == "":
        return f"the values are right, but they are a {type(got).__name__}: return a tensor."
    return ""


def _dtype(value: Any) -> str:
    return str(getattr(value, "dtype", type(value).__name__))


def _somebody_elses(case: Case, run: Run, bad: list[int]) -> str:
    """Tell when a rank returned what another rank had to."""
    assert case.expected is not None
    for rank in bad:
        for other in range(case.world_size):
            wanted = case.expected[other]
            if other != rank and not callable(wanted) and not difference(wanted, run.values[rank]):
                return (
                    f"Rank {rank} returns what rank {other} should: look at source and destination."
                )
    return ""


def _ranks(ranks: list[int]) -> str:
    return ("Rank " if len(ranks) == 1 else "Ranks ") + ", ".join(map(str, ranks))
