"""Choose the failing case to show, and find advice for its author: step two of a check.

failing cases --> the one that is easiest to read --> smaller ones that fail alike --> run in its own world
              --> a known mistake that behaves like the answer in all cases (`match_mistakes`) --> advice
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from helpers.checks.case import Case
from helpers.checks.case_runs import CaseRun, judged, run_isolated, run_together
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.judge import Execution
from helpers.checks.kinds import Kind
from helpers.checks.match_mistakes import Matches, behave_alike, broken_rules, explain
from helpers.checks.oracle import fill
from helpers.checks.result import CaseVerdict, Outcome
from helpers.checks.worlds import Flooded, Turn, Worlds

# _TWINS failing cases are drawn again with small numbers. If these and the other small cases all pass, and
# are at least _ENOUGH_SMALL, the size of the numbers is the cause.
_TWINS, _ENOUGH_SMALL = 3, 3
MOVES = (
    "Your result depends on poison values, so you read a tensor before wait() returned, or never "
    "received into it. The check fills new tensors of torch.empty with these values, and also the "
    "tensors that an irecv or an asynchronous call writes to, until wait() returns."
)
# The advice for a case that fails, but passes with small numbers, as others do.
SMALL_PASSES = (
    "The same case passes with small whole numbers of the same dtype and shape. Look for overflow, "
    "rounding or a dtype conversion."
)

Twins = Callable[[Case], Case | None]
"""Called with a case; returns the same case with small whole numbers, or None if its numbers are small."""


@dataclass(frozen=True)
class Presentation:
    """How a failing case is shown. matches: see `match_mistakes`. is_read: a learner reads it."""

    worlds: Worlds
    twins: Twins
    matches: Matches
    is_read: bool

    @property
    def exercise(self) -> Exercise:
        return self.worlds.exercise


def show(how: Presentation, failing: CaseRun, runs: Sequence[CaseRun]) -> CaseRun:
    """Run the case to show in place of a failing one; return its run with the best advice.

    runs: the runs of all cases. If the returned run passed, the failing case fails only when others run
    in its world.
    """
    best, note = _to_show(how, failing, runs)
    if best.passed or best.execution is None:
        return best
    verdict = _explained(how, best, best.execution, runs)
    if verdict.outcome is Outcome.WRONG:
        verdict = replace(verdict, message=verdict.message or note)
    if not failing.isolated:  # a smaller case may break fewer rules
        verdict = replace(verdict, partial=failing.verdict.partial)
    return replace(best, verdict=verdict)


def easiest(failing: CaseRun, runs: Sequence[CaseRun]) -> CaseRun:
    """Return the run that is easiest to read among those that fail with the same outcome as `failing`."""
    if failing.isolated:
        return failing

    def reading(run: CaseRun) -> tuple[bool, object]:
        # a wrong value shows more than a broken rule
        return not has_wrong_values(run.verdict), run.turn.case.reading

    outcome = failing.verdict.outcome
    return min((r for r in runs if not r.isolated and r.verdict.outcome is outcome), key=reading)


def _to_show(how: Presentation, failing: CaseRun, runs: Sequence[CaseRun]) -> tuple[CaseRun, str]:
    """Run the case itself or a smaller one that fails alike; return its run, and advice from that."""
    if failing.isolated:
        twin = how.twins(failing.turn.case)
        # a case that timed out would use up its time again, with any numbers
        if twin is None or failing.verdict.outcome is Outcome.TIMED_OUT:
            return failing, ""
        easier = run_isolated(how.worlds, replace(failing.turn, case=twin))
        return (failing if easier.passed else easier), ""
    smaller, note = _smaller(how, failing, runs)
    if smaller is not None:
        found = run_isolated(how.worlds, smaller)
        if not found.passed:
            return found, ""
    return run_isolated(how.worlds, failing.turn), note


def _smaller(
    how: Presentation, failing: CaseRun, runs: Sequence[CaseRun]
) -> tuple[Turn | None, str]:
    """Return a case that fails in the same way and is easier to read, if one exists, and advice from it.

    All candidates run in one world: some failing cases with small numbers, and some that are small
    altogether.
    """
    turn, ranks = failing.turn, failing.turn.case.world_size
    alike = [
        run.turn
        for run in runs
        if run is not failing
        and run.turn.case.world_size == ranks
        and not run.isolated
        and fail_alike(how.exercise, failing, run)
    ]
    twin = how.twins(turn.case)
    turns = [] if twin is None else [replace(turn, case=twin)]
    for each in alike:
        if len(turns) < _TWINS and (other := how.twins(each.case)) is not None:
            turns.append(replace(each, case=other))
    came: Mapping[int, CaseRun] = {}
    # the drawn cases did not break the check, so ignore a small case that does
    with suppress(CheckFault, Flooded):
        if how.is_read:
            turns += _low(how, ranks)
        came = run_together(how.worlds, turns)
    if not came:
        return (turns[0] if twin is not None else None), ""
    execution = [came[id(each.case)] for each in turns if id(each.case) in came]
    if (
        twin is not None
        and len(execution) >= _ENOUGH_SMALL
        and all(run.passed for run in execution)
    ):
        return None, SMALL_PASSES
    failed = [run.turn for run in execution if fail_alike(how.exercise, failing, run)]
    best = min(failed, key=lambda each: each.case.reading, default=turn)
    return (best if best.case.reading <= turn.case.reading else None), ""


def _low(how: Presentation, ranks: int) -> list[Turn]:
    """Draw cases that are small altogether."""
    own_server = how.worlds.connection is None
    low = fill(how.exercise, (VISIBLE_SECRET, f"low {ranks}"), own_server=own_server)
    return [Turn(case, number) for number, case in enumerate(low)]


def _explained(
    how: Presentation, shown: CaseRun, execution: Execution, runs: Sequence[CaseRun]
) -> CaseVerdict:
    """Judge the case that is shown again, with advice that also holds for all other cases."""
    known = [run for run in runs if not run.isolated and run.turn.case is not shown.turn.case]
    wrong = [run.execution for run in known if run.execution is not None and not run.passed]
    passed = [run.execution for run in known if run.execution is not None and run.passed]
    exercise = how.exercise
    verdict = judged(exercise, execution, wrong, passed, _argument_names(how.worlds))
    if exercise.kind is Kind.LOCAL:
        verdict = replace(verdict, given=tuple(shown.turn.case.given[0]))
    if not has_wrong_values(verdict):  # a broken rule needs no advice
        return verdict
    found = explain(how.worlds, execution, verdict.outcome, wrong, passed, how.matches)
    if found is not None:
        return replace(verdict, advice=shown.turn.case.say(found.words), mistake=found.title)
    if verdict.outcome is Outcome.WRONG and not verdict.advice:
        return replace(verdict, advice=_poison_advice(how.worlds, execution))
    return verdict


def _poison_advice(worlds: Worlds, execution: Execution) -> str:
    """Return advice if the wrong values come from poison values, because only they change with those."""
    if not worlds.exercise.kind.is_hard:
        return ""
    turn = Turn(execution.case, execution.number)
    again = worlds.alone(turn, second=True)
    if not again.run.ok or behave_alike(worlds.exercise, execution, again):
        return ""
    # a program that differs from run to run reads something other than poison, such as the clock
    for seen, second in ((again, True), (execution, False)):
        if not behave_alike(worlds.exercise, seen, worlds.alone(turn, second=second)):
            return ""
    return MOVES


def _argument_names(worlds: Worlds) -> tuple[str, ...]:
    """Return the names of the parameters for which a case has values."""
    kind = worlds.exercise.kind
    if not (kind.is_alone or kind is Kind.RANKS):
        return ()
    found: tuple[str, ...] = ()
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        found = next(_named(ast.parse(worlds.programs[0]), worlds.exercise.name), ())
    return found if kind.is_alone else found[2:]


def _named(module: ast.Module, name: str) -> Iterator[tuple[str, ...]]:
    """Yield a function's parameter names, or nothing if their number is not fixed."""
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            given = statement.args
            named = [each.arg for each in (*given.posonlyargs, *given.args)]
            yield () if given.vararg or given.kwonlyargs else tuple(named)


def has_wrong_values(verdict: CaseVerdict) -> bool:
    """Return whether more is wrong than how the ranks communicated."""
    return any(row.problem for row in verdict.rows) or bool(verdict.message)


def fail_alike(exercise: Exercise, one: CaseRun, other: CaseRun) -> bool:
    """Return whether two cases fail in the same way: with wrong values or not, and the same broken rules."""
    return _way(exercise, one) == _way(exercise, other)


def _way(exercise: Exercise, run: CaseRun) -> tuple[object, ...]:
    broken = broken_rules(exercise, run.execution) if run.execution is not None else []
    return run.verdict.outcome, has_wrong_values(run.verdict), broken


def has_hard_numbers(case: Case) -> bool:
    """Return whether a rank gets a tensor with fractions, or with numbers of two or more digits."""
    tensors = (x for part in case.given for x in part if isinstance(x, torch.Tensor))
    numbers = (x.detach().to(torch.float64) for x in tensors if not x.is_complex())
    return any(bool(((x.abs() > 10) | (x != x.round())).any()) for x in numbers)
