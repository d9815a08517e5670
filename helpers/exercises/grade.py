"""Try one answer on the cases of its exercise: what `check` and every grader call.

Answer, Exercise --draw--> cases --run_on_ranks(drive)--> Runs --judge--> CheckResult
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helpers.answers.build import Answer, Problem
from helpers.checks.drive import FILE, drive
from helpers.checks.result import CaseVerdict, CheckResult, Outcome
from helpers.checks.script_runs import run_of_script
from helpers.exercises.judge import judge
from helpers.exercises.model import VISIBLE_SECRET, Case, Exercise, Kind
from helpers.ranks.cells import place_of
from helpers.ranks.connection import Connection
from helpers.ranks.failures import LaunchError
from helpers.ranks.launcher import run_on_ranks
from helpers.ranks.run import Run
from helpers.trace.events import Place

NameCell = Callable[[int], str]
"""From the index of a cell to what its reader calls it: "cell 7", "cell [12]"."""

_STOP_AFTER = frozenset(
    {Outcome.DEADLOCKED, Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.NOT_ATTEMPTED}
)
"""Outcomes after which the other cases would only repeat the message, and cost a second each."""


def grade(
    exercise: Any,
    found: Answer | Problem,
    name_cell: NameCell,
    secret: str = VISIBLE_SECRET,
    *,
    every_case: bool = True,
    connection: Connection | None = None,
) -> CheckResult:
    """Try an answer, or say why there is none. Never raises on account of the answer.

    every_case: go on after a case that failed, so that the points are right. Without it the verdict
    and its advice are the same, and come sooner. connection: the rank server that runs it, by default this
    process's own.
    """
    notes = found.notes
    if isinstance(found, Problem):
        return _result(exercise, _outcome_of(found), message=found.message, notes=notes)
    verdicts: list[CaseVerdict] = []
    for case in exercise.draw(secret):
        if case.last and not all(verdict.passed for verdict in verdicts):
            continue
        try:
            run = try_case(exercise, case, found, name_cell, connection)
        except LaunchError as error:
            return _result(exercise, Outcome.CRASHED, message=str(error), notes=notes)
        verdicts.append(_judged(exercise, case, run))
        if verdicts[-1].outcome in _STOP_AFTER or not (every_case or verdicts[-1].passed):
            break
    return _summed(exercise, tuple(verdicts), len(exercise.draw(secret)), notes)


def _judged(exercise: Exercise, case: Case, run: Run) -> CaseVerdict:
    """Judge a run; whatever ranks sent that cannot even be compared is wrong, and raises nothing."""
    try:
        return judge(exercise, case, run)
    except Exception as error:
        said = f"What came back cannot be compared ({type(error).__name__}: {str(error)[:200]})."
        advice = "Return plain tensors and numbers, of the dtypes that the task names."
        return CaseVerdict(case.label, Outcome.WRONG, message=said, advice=advice, run=run)


def try_case(
    exercise: Exercise,
    case: Case,
    answer: Answer,
    name_cell: NameCell,
    connection: Connection | None = None,
) -> Run:
    """Run one case on real ranks. Only the source and a rank's own inputs travel to it."""
    lines = answer.source.splitlines()

    def name_place(file: str, line: int, function: str) -> Place:
        at = answer.place(line) if file == FILE else None
        if at is None:
            return place_of(file, line, function)
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return Place(file, at[1], function, name_cell(at[0]), text)

    script = exercise.kind is Kind.SCRIPT
    local = script or exercise.kind in {Kind.LOCAL, Kind.JUDGEMENT, Kind.MEASUREMENT}
    inputs = case.inputs or [()] * case.world_size
    run = run_on_ranks(
        drive,
        1 if script else case.world_size,
        args=(answer.source, answer.name, exercise.kind.value, exercise.programme),
        per_rank=[(tuple(mine),) for mine in (inputs[:1] if script else inputs)],
        env=case.env,
        init=case.init and not local,
        timeout=case.timeout_s,
        name_place=name_place,
        connection=connection,
    )
    return run_of_script(case.world_size, case.timeout_s, run, name_place) if script else run


def _outcome_of(problem: Problem) -> Outcome:
    return Outcome.NOT_ATTEMPTED if problem.kind == "not_attempted" else Outcome.UNREADABLE


def _summed(
    exercise: Exercise, verdicts: tuple[CaseVerdict, ...], count: int, notes: tuple[str, ...]
) -> CheckResult:
    credit = sum(verdict.credit for verdict in verdicts)
    failed = [verdict for verdict in verdicts if not verdict.passed]
    outcome = failed[0].outcome if failed else Outcome.PASSED
    return CheckResult(
        exercise.name,
        exercise.heading,
        outcome,
        verdicts,
        points=exercise.points * credit / count if count else 0.0,
        out_of=exercise.points,
        notes=notes,
        rules=tuple(rule.text for rule in exercise.rules),
    )


def _result(
    exercise: Exercise, outcome: Outcome, message: str, notes: tuple[str, ...]
) -> CheckResult:
    return CheckResult(
        exercise.name,
        exercise.heading,
        outcome,
        message=message,
        out_of=exercise.points,
        notes=notes,
        rules=tuple(rule.text for rule in exercise.rules),
    )
