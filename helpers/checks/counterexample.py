"""Choose the failing case to show, and find advice for its author: step two of a check.

failing cases --> the easiest to read --> smaller cases that fail alike --> run in a separate world
              --> a known mistake that behaves like the answer in all cases (`match_mistakes`) --> advice
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import torch

from helpers.check_result import CaseVerdict, Outcome
from helpers.checks.answer_shape import AnswerShape, shape_of
from helpers.checks.case import Case
from helpers.checks.case_runs import CaseRun, judge_case, run_in_one_world, run_isolated
from helpers.checks.execution import Execution
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.kinds import Kind
from helpers.checks.match_mistakes import Matches, behave_alike, broken_rules, find_mistake
from helpers.checks.right_values import fill_case_set
from helpers.checks.worlds import Flooded, Turn, Worlds

# At most _MAX_TWINS failing cases are drawn again with small numbers. If these and the other small cases
# number at least _MIN_SMALL_PASSES, and if all of them pass, the size of the numbers is the cause.
_MAX_TWINS, _MIN_SMALL_PASSES = 3, 3
POISON_ADVICE = (
    "Your result depends on poison values, so you read a tensor before wait() returned, or never received "
    "anything into it. The check fills new tensors from torch.empty with these values, and also the "
    "tensors that an irecv or an asynchronous call writes to, until wait() returns."
)
# The advice for a case that fails, although it passes with small numbers, as do other small cases.
SMALL_NUMBERS_ADVICE = (
    "The same case passes with small whole numbers of the same dtype and shape. Look for overflow, "
    "rounding or a dtype conversion."
)

CaseSimplifier = Callable[[Case], Case | None]
"""Called with a case; returns the same case with small whole numbers, or None if its numbers are small."""


@dataclass(frozen=True)
class Presentation:
    """Options for showing a failing case.

    matches: see `match_mistakes`. is_for_learner: whether a learner sees it.
    """

    worlds: Worlds
    simplify_case: CaseSimplifier
    matches: Matches
    is_for_learner: bool

    @property
    def exercise(self) -> Exercise:
        return self.worlds.exercise


def choose_shown_run(
    presentation: Presentation, failing: CaseRun, runs: Sequence[CaseRun]
) -> CaseRun:
    """Run the case to show in place of a failing case; return its run with the best advice.

    runs: the runs of all cases. If the returned run passed, the failing case fails only in a shared world.
    """
    shown_run, note = _find_shown_run(presentation, failing, runs)
    if shown_run.passed or shown_run.execution is None:
        return shown_run
    verdict = _judge_with_advice(presentation, shown_run, shown_run.execution, runs)
    if verdict.outcome is Outcome.WRONG:
        verdict = replace(verdict, message=verdict.message or note)
    if not failing.isolated:  # a smaller case may break fewer rules than the original
        verdict = replace(verdict, credit=failing.verdict.credit)
    return replace(shown_run, verdict=verdict)


def easiest_to_read(failing: CaseRun, runs: Sequence[CaseRun]) -> CaseRun:
    """Return the easiest run to read among the runs that fail with the same outcome as `failing`."""
    if failing.isolated:
        return failing

    def reading_key(run: CaseRun) -> tuple[bool, object]:
        # a wrong value shows more than a broken rule
        return not has_wrong_values(run.verdict), run.turn.case.reading_order

    outcome = failing.verdict.outcome
    return min(
        (run for run in runs if not run.isolated and run.verdict.outcome is outcome),
        key=reading_key,
    )


def _find_shown_run(
    presentation: Presentation, failing: CaseRun, runs: Sequence[CaseRun]
) -> tuple[CaseRun, str]:
    """Run the case or a smaller one that fails alike; return its run, and the advice derived from it."""
    if failing.isolated:
        twin = presentation.simplify_case(failing.turn.case)
        # a case that timed out would use up its time again, even with different numbers
        if twin is None or failing.verdict.outcome is Outcome.TIMED_OUT:
            return failing, ""
        twin_run = run_isolated(presentation.worlds, replace(failing.turn, case=twin))
        return (failing if twin_run.passed else twin_run), ""
    smaller, note = _find_smaller(presentation, failing, runs)
    if smaller is not None:
        smaller_run = run_isolated(presentation.worlds, smaller)
        if not smaller_run.passed:
            return smaller_run, ""
    return run_isolated(presentation.worlds, failing.turn), note


def _find_smaller(
    presentation: Presentation, failing: CaseRun, runs: Sequence[CaseRun]
) -> tuple[Turn | None, str]:
    """Return an easier case that fails in the same way, if one exists, and the advice derived from it.

    All candidates run in one world: some failing cases with small numbers, and some cases whose sizes are
    small as well.
    """
    turn, ranks = failing.turn, failing.turn.case.world_size
    similar = [
        run.turn
        for run in runs
        if run is not failing
        and run.turn.case.world_size == ranks
        and not run.isolated
        and fail_alike(presentation.exercise, failing, run)
    ]
    twin = presentation.simplify_case(turn.case)
    turns = [] if twin is None else [replace(turn, case=twin)]
    for similar_turn in similar:
        if (
            len(turns) < _MAX_TWINS
            and (other_twin := presentation.simplify_case(similar_turn.case)) is not None
        ):
            turns.append(replace(similar_turn, case=other_twin))
    runs_by_case: Mapping[int, CaseRun] = {}
    # the drawn cases did not make the check fail, so ignore a small case on which it fails
    with suppress(CheckFault, Flooded):
        if presentation.is_for_learner:
            turns += _draw_low(presentation, ranks)
        runs_by_case = run_in_one_world(presentation.worlds, turns)
    if not runs_by_case:
        return (turns[0] if twin is not None else None), ""
    small_runs = [
        runs_by_case[id(similar_turn.case)]
        for similar_turn in turns
        if id(similar_turn.case) in runs_by_case
    ]
    if (
        twin is not None
        and len(small_runs) >= _MIN_SMALL_PASSES
        and all(run.passed for run in small_runs)
    ):
        return None, SMALL_NUMBERS_ADVICE
    failed = [run.turn for run in small_runs if fail_alike(presentation.exercise, failing, run)]
    best = min(failed, key=lambda similar_turn: similar_turn.case.reading_order, default=turn)
    return (best if best.case.reading_order <= turn.case.reading_order else None), ""


def _draw_low(presentation: Presentation, ranks: int) -> list[Turn]:
    """Draw cases with small numbers and small sizes."""
    own_server = presentation.worlds.connection is None
    cases = fill_case_set(
        presentation.exercise, (VISIBLE_SECRET, f"low {ranks}"), own_server=own_server
    )
    return [Turn(case, number) for number, case in enumerate(cases)]


def _judge_with_advice(
    presentation: Presentation, shown_run: CaseRun, execution: Execution, runs: Sequence[CaseRun]
) -> CaseVerdict:
    """Judge the shown case again, with advice that also holds for all other cases."""
    other_runs = [
        run for run in runs if not run.isolated and run.turn.case is not shown_run.turn.case
    ]
    wrong_cases = [
        run.execution for run in other_runs if run.execution is not None and not run.passed
    ]
    passed_cases = [run.execution for run in other_runs if run.execution is not None and run.passed]
    exercise = presentation.exercise
    verdict = judge_case(
        exercise, execution, wrong_cases, passed_cases, _shape_of_answer(presentation.worlds)
    )
    if exercise.kind is Kind.LOCAL:
        verdict = replace(verdict, given=tuple(shown_run.turn.case.given[0]))
    if not has_wrong_values(verdict):  # a broken rule needs no advice
        return verdict
    mistake = find_mistake(
        presentation.worlds,
        execution,
        verdict.outcome,
        wrong_cases,
        passed_cases,
        presentation.matches,
    )
    if mistake is not None:
        return replace(
            verdict, advice=shown_run.turn.case.fill_facts(mistake.words), mistake=mistake.title
        )
    if verdict.outcome is Outcome.WRONG and not verdict.advice:
        return replace(verdict, advice=_poison_advice(presentation.worlds, execution))
    return verdict


def _poison_advice(worlds: Worlds, execution: Execution) -> str:
    """Return advice if the wrong values come from poison values, because they change with the poison."""
    if not worlds.exercise.kind.is_adversarial:
        return ""
    turn = Turn(execution.case, execution.number)
    poisoned_again = worlds.run_alone(turn, other_poison=True)
    if not poisoned_again.run.ok or behave_alike(worlds.exercise, execution, poisoned_again):
        return ""
    # a program whose values vary between runs depends on other data than poison, such as the clock
    for expected, other_poison in ((poisoned_again, True), (execution, False)):
        if not behave_alike(
            worlds.exercise, expected, worlds.run_alone(turn, other_poison=other_poison)
        ):
            return ""
    return POISON_ADVICE


def _shape_of_answer(worlds: Worlds) -> AnswerShape:
    """Return the shape of the answer, keeping only the parameters for which a case has values."""
    kind = worlds.exercise.kind
    shape = shape_of(worlds.programs[0], worlds.exercise.name)
    if kind.is_alone:
        return shape
    # a driver passes different arguments
    return replace(shape, parameters=shape.parameters[2:] if kind is Kind.RANKS else ())


def has_wrong_values(verdict: CaseVerdict) -> bool:
    """Return whether anything except the ranks' communication is wrong."""
    return any(row.problem for row in verdict.rows) or bool(verdict.message)


def fail_alike(exercise: Exercise, run: CaseRun, other: CaseRun) -> bool:
    """Return whether two cases fail alike: they break the same rules, and both or neither by wrong values."""
    return _failure_key(exercise, run) == _failure_key(exercise, other)


def _failure_key(exercise: Exercise, run: CaseRun) -> tuple[object, ...]:
    broken = broken_rules(exercise, run.execution) if run.execution is not None else []
    return run.verdict.outcome, has_wrong_values(run.verdict), broken


def has_hard_numbers(case: Case) -> bool:
    """Return whether a rank receives a tensor with fractions, or with numbers of two or more digits."""
    tensors = (tensor for part in case.given for tensor in part if isinstance(tensor, torch.Tensor))
    numbers = (tensor.detach().to(torch.float64) for tensor in tensors if not tensor.is_complex())
    return any(bool(((tensor.abs() > 10) | (tensor != tensor.round())).any()) for tensor in numbers)
