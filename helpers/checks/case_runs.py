"""Run an answer on all of its cases, and judge each: step one of a check.

    cases of one world size -- one after another in one world --> a verdict for each
                               `-- the world failed, or a case left something behind --> each in its own world

Dozens of cases therefore cost as much as a few launches. A case that passes in a shared world has passed:
its values are right, its rules hold, and it left nothing for the next case. The rank itself reports where
one case ends and the next begins, and an answer could change that report. So every recorded call must
belong to some case. If one case makes a forbidden call, it may have made the call for a different case.
So the cases that passed in that world run again in a second world, without the first case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from helpers.checks.case import Case
from helpers.checks.exercise import Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.judge import Execution, Unjudged, judge, label_of
from helpers.checks.result import CaseVerdict, Outcome
from helpers.checks.worlds import MOST_EVENTS, Flooded, Turn, Worlds, is_clean

# Outcomes after which the other cases would only repeat the message, for a second each.
_STOP_AFTER = frozenset(
    {Outcome.DEADLOCKED, Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.NOT_ATTEMPTED}
)


@dataclass(frozen=True, eq=False)
class CaseRun:
    """One case and its verdict. tried: the ranks' actions and results; None if the run was too large to read.

    isolated: the case had a world of its own.
    """

    turn: Turn
    verdict: CaseVerdict
    execution: Execution | None = None
    isolated: bool = False

    @property
    def passed(self) -> bool:
        return self.verdict.passed

    @property
    def ends_the_check(self) -> bool:
        """Return whether further cases would fail in the same way, or take minutes."""
        return self.verdict.outcome in _STOP_AFTER | {Outcome.FLOODED} or took_minutes(self.verdict)


def in_groups(
    exercise: Exercise, cases: Sequence[Case]
) -> tuple[list[list[Turn]], list[list[Turn]]]:
    """Return cases in groups of one world size and, separately, `Exercise.last` if it exists."""
    first, last = (cases[:-1], cases[-1:]) if exercise.last is not None else (cases, ())
    by_size = groupby(first, key=lambda case: case.world_size)
    groups = [[Turn(case, number) for number, case in enumerate(group)] for _, group in by_size]
    return groups, [[Turn(case, 0)] for case in last]


def run_all(
    worlds: Worlds, groups: Iterable[Sequence[Turn]], every_case: bool, look_ahead: bool
) -> list[CaseRun]:
    """Run groups of cases until all are judged, or one ends the check. Raise CheckFault, LaunchError.

    every_case: continue after a case that failed. look_ahead: otherwise run one more group, because advice
    on the failing case must also agree with cases of a different size.
    """
    runs: list[CaseRun] = []
    for group in groups:
        has_failed = not all(run.passed for run in runs)
        found = _run_group(worlds, group, every_case, only_together=has_failed and not every_case)
        runs += found
        if any(run.ends_the_check for run in found):
            break
        if not every_case and (has_failed or not (look_ahead or all(r.passed for r in found))):
            break
    return runs


def _run_group(
    worlds: Worlds, group: Sequence[Turn], every_case: bool, only_together: bool
) -> list[CaseRun]:
    """Run cases of one size in order. only_together: leave out those that cannot share a world."""
    try:
        known = run_together(worlds, group)
        if every_case and any(_is_forbidden(run) for run in known.values()):
            known = _settled(worlds, known)
    except Flooded:
        return [flood(worlds.exercise, group[0])]
    runs: list[CaseRun] = []
    for turn in group:
        run = known.get(id(turn.case))
        if run is None:
            has_failed = any(not each.passed for each in (*known.values(), *runs))
            if only_together or (has_failed and not every_case):
                continue
            run = run_isolated(worlds, turn)
        runs.append(run)
        if run.ends_the_check:
            break
    return runs


def run_together(worlds: Worlds, group: Sequence[Turn]) -> dict[int, CaseRun]:
    """Run cases in one world; return the runs by id() of the case. Raise Flooded, CheckFault.

    The result is empty if the world failed. Otherwise it lacks the cases that left something behind.
    """
    turns = [turn for turn in group if turn.may_share]
    if not worlds.exercise.is_together or len(turns) < 2:
        return {}
    shared = worlds.together(turns)
    if shared is None:
        return {}
    parts, world = shared
    runs = {}
    for turn, execution in zip(turns, parts, strict=True):
        verdict = replace(judged(worlds.exercise, execution), world=world)
        # timings are trusted only in the case's own world, and only after two runs
        if is_clean(execution.run.trace) and verdict.outcome is not Outcome.TOO_SLOW:
            runs[id(turn.case)] = CaseRun(turn, verdict, execution)
    return runs


def _is_forbidden(run: CaseRun) -> bool:
    return run.verdict.outcome is Outcome.FORBIDDEN


def _settled(worlds: Worlds, known: dict[int, CaseRun]) -> dict[int, CaseRun]:
    """Run the passed cases again without those that made a forbidden call, perhaps on behalf of the others.

    If a forbidden call occurs even then, the cases have to run alone.
    """
    passed = [run.turn for run in known.values() if run.passed]
    again = run_together(worlds, passed)
    doubted = any(_is_forbidden(run) for run in again.values())
    kept = {key: run for key, run in known.items() if not run.passed}
    return kept | {key: run for key, run in again.items() if not (doubted and run.passed)}


def run_isolated(worlds: Worlds, turn: Turn) -> CaseRun:
    """Run one case in its own world. Raise CheckFault."""
    try:
        execution = worlds.alone(turn)
        verdict = judged(worlds.exercise, execution)
        if verdict.outcome is Outcome.TOO_SLOW and not took_minutes(verdict):
            # Another program may have slowed down the first run.
            execution = worlds.alone(turn)
            verdict = judged(worlds.exercise, execution)
    except Flooded:
        return flood(worlds.exercise, turn)
    return CaseRun(turn, verdict, execution, isolated=True)


def judged(
    exercise: Exercise,
    execution: Execution,
    others: Sequence[Execution] = (),
    passed: Sequence[Execution] = (),
    names: Sequence[str] = (),
) -> CaseVerdict:
    """Judge the run of a case. Raise CheckFault if the exercise's own functions fail on it."""
    try:
        return judge(exercise, execution, others, passed, names)
    except Unjudged as error:
        said = f"In the case {label_of(exercise, execution.case)}, {error.came}"
        raise CheckFault(f"{said} ({error})", f"{said}.", error.is_odd) from error
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:200]}"
        raise CheckFault(f"case {execution.case.label}: {said}") from error


def took_minutes(verdict: CaseVerdict) -> bool:
    """Return whether a run used up its wall time, so that a rerun would take minutes more."""
    run = verdict.run
    return verdict.outcome is Outcome.TOO_SLOW and run is not None and run.failure is not None


def flood(exercise: Exercise, turn: Turn) -> CaseRun:
    """Return the run of a case in which a rank made more calls than are read."""
    message = f"More than {MOST_EVENTS:,} calls of a rank were recorded; no answer needs that many."
    label = label_of(exercise, turn.case)
    return CaseRun(turn, CaseVerdict(label, Outcome.FLOODED, message=message), isolated=True)
