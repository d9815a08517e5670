"""Run an answer on all of its cases, and judge each: step one of a check.

    cases of one world size -- one after another in one world --> a verdict for each
                               `-- the world failed, or a case left traces --> each in a separate world

Therefore dozens of cases take only as long as a few launches. A case that passes in a shared world has
passed: its values are right, its rules hold, and it left no trace for the next case. The rank itself reports
where one case ends and the next begins, and an answer could change this report. So every recorded call must
belong to some case. If one case makes a forbidden call, it may have made the call for a different case. So
the cases that passed in this world run again in a second world, without the offending case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from helpers.check_result import CaseVerdict, Outcome
from helpers.checks.answer_shape import NO_SHAPE, AnswerShape
from helpers.checks.case import Case
from helpers.checks.execution import Execution, JudgeFailed
from helpers.checks.exercise import Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.judge import judge, label_of
from helpers.checks.limits import RESOURCE_OUTCOMES
from helpers.checks.worlds import MAX_EVENTS, Flooded, Turn, Worlds, is_clean
from helpers.views.failed_case import in_case

# Outcomes after which each further case would take a second and repeat the same message.
_FINAL_OUTCOMES = frozenset(
    {Outcome.DEADLOCKED, Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.NOT_ATTEMPTED}
    | RESOURCE_OUTCOMES
)


@dataclass(frozen=True, eq=False)
class CaseRun:
    """One case and its verdict.

    execution: the ranks' actions and results; None if the run was too large to read.
    isolated: whether the case ran in a separate world.
    """

    turn: Turn
    verdict: CaseVerdict
    execution: Execution | None = None
    isolated: bool = False

    @property
    def passed(self) -> bool:
        return self.verdict.passed

    @property
    def ends_check(self) -> bool:
        """Return whether further cases would fail in the same way or take minutes."""
        return self.verdict.outcome in _FINAL_OUTCOMES or used_up_wall_time(self.verdict)


def group_cases(
    exercise: Exercise, cases: Sequence[Case]
) -> tuple[list[list[Turn]], list[list[Turn]]]:
    """Return cases in groups of one world size and, separately, `Exercise.last` if it exists."""
    shared_cases, last_case = (cases[:-1], cases[-1:]) if exercise.last is not None else (cases, ())
    by_size = groupby(shared_cases, key=lambda case: case.world_size)
    groups = [[Turn(case, number) for number, case in enumerate(group)] for _, group in by_size]
    return groups, [[Turn(case, 0)] for case in last_case]


def run_groups(
    worlds: Worlds, groups: Iterable[Sequence[Turn]], every_case: bool, run_next_size: bool
) -> list[CaseRun]:
    """Run groups of cases until all are judged, or one ends the check. Raise CheckFault, LaunchError.

    every_case: whether to continue after a failed case. run_next_size: whether to run one more group even
    then, because advice on the failing case must also agree with cases of a different size.
    """
    runs: list[CaseRun] = []
    for group in groups:
        has_failed = not all(run.passed for run in runs)
        group_runs = _run_group(
            worlds, group, every_case, skip_isolated=has_failed and not every_case
        )
        runs += group_runs
        if any(run.ends_check for run in group_runs):
            break
        if not every_case and (
            has_failed or not (run_next_size or all(run.passed for run in group_runs))
        ):
            break
    return runs


def _run_group(
    worlds: Worlds, group: Sequence[Turn], every_case: bool, skip_isolated: bool
) -> list[CaseRun]:
    """Run cases of one size in order. skip_isolated: whether to leave out cases that cannot share a world."""
    try:
        shared_runs = run_in_one_world(worlds, group)
        if every_case and any(_is_forbidden(run) for run in shared_runs.values()):
            shared_runs = _rerun_without_forbidden(worlds, shared_runs)
    except Flooded:
        return [flooded_run(worlds.exercise, group[0])]
    runs: list[CaseRun] = []
    for turn in group:
        run = shared_runs.get(id(turn.case))
        if run is None:
            if skip_isolated:
                continue
            run = run_isolated(worlds, turn)
        runs.append(run)
        if run.ends_check:
            break
    return runs


def run_in_one_world(worlds: Worlds, group: Sequence[Turn]) -> dict[int, CaseRun]:
    """Run cases in one world; return the runs by id() of the case. Raise Flooded, CheckFault.

    The result is empty if the world failed. Otherwise it omits the cases that left traces behind.
    """
    turns = [turn for turn in group if turn.may_share]
    if not worlds.exercise.may_share_world or len(turns) < 2:
        return {}
    shared = worlds.run_turns(turns)
    if shared is None:
        return {}
    executions, world = shared
    runs = {}
    for turn, execution in zip(turns, executions, strict=True):
        verdict = replace(judge_case(worlds.exercise, execution), world=world)
        # a case counts as too slow only in a separate world, and only after two runs
        if is_clean(execution.run.trace) and verdict.outcome is not Outcome.TOO_SLOW:
            runs[id(turn.case)] = CaseRun(turn, verdict, execution)
    return runs


def _is_forbidden(run: CaseRun) -> bool:
    return run.verdict.outcome is Outcome.FORBIDDEN


def _rerun_without_forbidden(worlds: Worlds, first_runs: dict[int, CaseRun]) -> dict[int, CaseRun]:
    """Run passed cases again without those that made a forbidden call, which may have helped the others.

    If a forbidden call occurs even then, the cases have to run in separate worlds.
    """
    passed = [run.turn for run in first_runs.values() if run.passed]
    second_runs = run_in_one_world(worlds, passed)
    is_forbidden_again = any(_is_forbidden(run) for run in second_runs.values())
    failed = {key: run for key, run in first_runs.items() if not run.passed}
    return failed | {
        key: run for key, run in second_runs.items() if not (is_forbidden_again and run.passed)
    }


def run_isolated(worlds: Worlds, turn: Turn) -> CaseRun:
    """Run one case in a separate world. Raise CheckFault."""
    try:
        execution = worlds.run_alone(turn)
        verdict = judge_case(worlds.exercise, execution)
        if verdict.outcome is Outcome.TOO_SLOW and not used_up_wall_time(verdict):
            # The first run may have been slowed down by another program.
            execution = worlds.run_alone(turn)
            verdict = judge_case(worlds.exercise, execution)
    except Flooded:
        return flooded_run(worlds.exercise, turn)
    return CaseRun(turn, verdict, execution, isolated=True)


def judge_case(
    exercise: Exercise,
    execution: Execution,
    other_failures: Sequence[Execution] = (),
    passed_cases: Sequence[Execution] = (),
    shape: AnswerShape = NO_SHAPE,
) -> CaseVerdict:
    """Judge the run of a case. Raise CheckFault if the exercise's functions fail on it."""
    try:
        return judge(exercise, execution, other_failures, passed_cases, shape)
    except JudgeFailed as error:
        message = f"{in_case(label_of(exercise, execution.case))}, {error.returned_value}"
        raise CheckFault(f"{message} ({error})", f"{message}.", error.is_odd) from error
    except Exception as error:
        message = f"{type(error).__name__}: {str(error)[:200]}"
        raise CheckFault(f"case {execution.case.label}: {message}") from error


def used_up_wall_time(verdict: CaseVerdict) -> bool:
    """Return whether a run used up its wall time, so that a rerun would take minutes more."""
    run = verdict.run
    return verdict.outcome is Outcome.TOO_SLOW and run is not None and run.failure is not None


def flooded_run(exercise: Exercise, turn: Turn) -> CaseRun:
    """Return the run of a case in which a rank made too many calls to read."""
    message = f"More than {MAX_EVENTS:,} calls of a rank were recorded; no answer needs that many."
    label = label_of(exercise, turn.case)
    return CaseRun(
        turn, CaseVerdict(label=label, outcome=Outcome.FLOODED, message=message), isolated=True
    )
