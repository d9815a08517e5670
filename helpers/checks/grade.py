"""Check one answer on the cases of its exercise, for `check` and for every grader.

    Exercise.draw -> cases -- run_all --> a verdict for each -- show the first that failed --> CheckResult

`case_runs` runs the answer and judges each case. If some failed, `counterexample` chooses the case that the
author reads, runs it in a world of its own, and looks for advice. Only that run is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from helpers.answers.build import Answer, Problem, defined_in
from helpers.answers.data import NO_ATTEMPT
from helpers.checks.answer_source import FILE
from helpers.checks.case import Case
from helpers.checks.case_runs import CaseRun, flood, in_groups, run_all, run_isolated
from helpers.checks.counterexample import Presentation, easiest, has_hard_numbers, show
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.kinds import Kind
from helpers.checks.match_mistakes import Matches
from helpers.checks.oracle import draw, fill
from helpers.checks.registry import exercises
from helpers.checks.result import CaseVerdict, CheckResult, Outcome
from helpers.checks.worlds import Flooded, Turn, Worlds
from helpers.ranks.cells import place_of
from helpers.ranks.connection import Servers
from helpers.ranks.failures import LaunchError
from helpers.trace.events import Place

NameCell = Callable[[int], str]
"""Called with the index of a cell; returns the reader's name for it: "cell 7", "cell [12]"."""

# A case that failed next to others may pass alone. After this many confirmed failures, assume that the
# remaining ones fail too. An answer that is right only in the first call of a process passes alone, but is
# still wrong.
_MOST_ISOLATED = 8
# If an answer fails, at most this many answers to other exercises that it calls are tried as well.
_MOST_PARTS = 3


def grade(
    exercise: Exercise,
    found: Answer | Problem,
    name_cell: NameCell,
    secret: str = VISIBLE_SECRET,
    *,
    every_case: bool = True,
    connection: Servers | None = None,
    record_values: bool = False,
    matches: Matches | None = None,
) -> CheckResult:
    """Try an answer, or report why there is none. The answer never makes it raise.

    every_case: continue after a case that failed, so that the points are exact. Otherwise the outcome and
    the advice are the same, but come sooner. connection: the rank server that runs the answer, by default
    this process's own. record_values: record tensor values in cases that run alone, as failing ones do.
    """
    if isinstance(found, Problem):
        outcome = Outcome.NOT_ATTEMPTED if found.kind in NO_ATTEMPT else Outcome.UNREADABLE
        return _result(exercise, found, outcome, message=found.message)
    visible = secret == VISIBLE_SECRET
    worlds = Worlds(exercise, [found.source], _places(found, name_cell), connection, record_values)
    # no learner sees the advice on a hidden case
    is_read = matches is None and visible
    advice = {} if is_read else matches
    with one_thread():
        check = _Check(worlds, secret, every_case, advice, is_read)
        result = _checked(check, found)
        if result.passed or result.outcome is Outcome.FAULT or not visible:
            return result
        return replace(result, notes=(*result.notes, *_wrong_parts(worlds, found, result)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Draw and judge in one thread: on a busy machine, torch's threads make small sums ten times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _places(answer: Answer, name_cell: NameCell) -> Callable[[str, int, str], Place]:
    """Return a function that turns a line of an answer's source into a place in the learner's notebook."""

    def place(file: str, line: int, function: str) -> Place:
        at = answer.place(line) if file == FILE else None
        if at is None:
            return place_of(file, line, function)
        lines = answer.source.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return Place(file, at[1], function, name_cell(at[0]), text)

    return place


def _wrong_parts(worlds: Worlds, found: Answer, result: CheckResult) -> list[str]:
    """Return the names of answers to other exercises that this one calls and that are wrong themselves.

    They are tried on cases of the world size that is shown. result: of this answer. If it was attempted,
    the check has replaced stubs that it calls by right answers.
    """
    said = []
    own, size = worlds.exercise.name, result.run.world_size if result.run is not None else 0
    others = [name for name in defined_in(found) if name in exercises() and name != own]
    for name in others[:_MOST_PARTS]:
        part = exercises()[name]
        own_worlds = replace(worlds, exercise=part, record_values=False)
        check = _Check(own_worlds, VISIBLE_SECRET, every_case=False)
        left_out = [k for k, case in enumerate(part.draw()) if case.world_size != size]
        outcome = _checked(check, replace(found, name=name), left_out).outcome
        is_lent = outcome is Outcome.NOT_ATTEMPTED and result.outcome is not outcome
        # a fault of the check says nothing about the part, because a grader has not yet run its
        # reference
        if outcome not in {Outcome.PASSED, Outcome.FAULT} and not is_lent:
            said.append(
                f"`{name}` ({part.number}), which this answer calls, fails its own check. Fix it first."
            )
    return said


@dataclass(frozen=True)
class _Check:
    """How one answer is checked.

    matches: of `match_mistakes`, which advises; None if no advice is needed. is_read: a learner reads the
    result.
    """

    worlds: Worlds
    secret: str
    every_case: bool
    matches: Matches | None = None
    is_read: bool = False

    @property
    def own_server(self) -> bool:
        return self.worlds.connection is None


def _checked(check: _Check, found: Answer, left_out: Collection[int] = ()) -> CheckResult:
    exercise = check.worlds.exercise
    try:
        cases = draw(exercise, check.secret, own_server=check.own_server)
        groups, last = in_groups(exercise, cases)
        if left_out:
            known = {id(cases[k]) for k in left_out}
            groups, last = _without(known, groups), _without(known, last)
        runs = _runs(check, cases, groups)
        if all(run.passed for run in runs):
            runs += _runs(check, cases, last)
    except CheckFault as fault:
        return _not_judged(exercise, found, fault)
    except LaunchError as error:
        return _result(exercise, found, Outcome.CRASHED, message=str(error))
    return summed(exercise, found, _verdicts(runs, check.every_case), len(cases))


def _runs(check: _Check, cases: Sequence[Case], groups: Sequence[Sequence[Turn]]) -> list[CaseRun]:
    """Run all groups; put the run that is shown in place of the first that failed."""
    runs = run_all(check.worlds, groups, check.every_case, look_ahead=check.matches is not None)
    for _ in range(_MOST_ISOLATED):
        first = next((k for k, run in enumerate(runs) if not run.passed), None)
        if first is None:
            break
        if check.matches is not None:  # swap the first that failed with the easiest to read
            best = runs.index(easiest(runs[first], runs))
            runs[first], runs[best] = runs[best], runs[first]
        runs[first] = _shown(check, cases, runs[first], runs)
        if not runs[first].passed:
            break
    return runs


def _shown(
    check: _Check, cases: Sequence[Case], failing: CaseRun, runs: Sequence[CaseRun]
) -> CaseRun:
    if check.matches is None:
        return failing if failing.isolated else run_isolated(check.worlds, failing.turn)

    def twin(case: Case) -> Case | None:
        if not has_hard_numbers(case):
            return None
        size = case.world_size
        alike = [each for each in cases if each.world_size == size]
        drawn = (check.secret, f"small {size}")
        others = fill(check.worlds.exercise, drawn, own_server=check.own_server)
        small = next(two for one, two in zip(alike, others, strict=True) if one is case)
        # if a size depends on a drawn number, this is a different case
        return small if small.label == case.label else None

    try:
        return show(Presentation(check.worlds, twin, check.matches, check.is_read), failing, runs)
    except Flooded:
        return flood(check.worlds.exercise, failing.turn)


def _verdicts(runs: Sequence[CaseRun], every_case: bool) -> list[CaseVerdict]:
    """Return all verdicts, or those up to the first that failed.

    Only the first that failed keeps its advice.
    """
    found: list[CaseVerdict] = []
    for run in runs:
        if all(verdict.passed for verdict in found):
            found.append(run.verdict)
        elif every_case:
            wrong = run.verdict.outcome is Outcome.WRONG
            found.append(replace(run.verdict, advice="") if wrong else run.verdict)
    return found


def _without(known: Collection[int], groups: Sequence[Sequence[Turn]]) -> list[list[Turn]]:
    """Return the groups without the cases that have these id() values."""
    left = [[turn for turn in group if id(turn.case) not in known] for group in groups]
    return [group for group in left if group]


def summed(
    exercise: Exercise, found: Answer, verdicts: Sequence[CaseVerdict], count: int
) -> CheckResult:
    """Combine the verdicts of an answer's cases into a result. count: of all its cases."""
    failed: Iterator[CaseVerdict] = (verdict for verdict in verdicts if not verdict.passed)
    worst = next(failed, None)
    sizes = {verdict.run.world_size for verdict in verdicts if verdict.run is not None}
    return replace(
        _result(exercise, found, worst.outcome if worst else Outcome.PASSED),
        cases=tuple(verdicts),
        sizes=() if exercise.kind.is_alone else tuple(sorted(sizes)),
        given=worst.given if worst else (),
        # rounded as it is displayed, so that no two places differ in the second decimal
        points=round(exercise.points * _share(exercise, verdicts, count), 1) if count else 0.0,
    )


def _share(exercise: Exercise, verdicts: Sequence[CaseVerdict], count: int) -> float:
    """Return the share of the exercise's points that an answer gets."""
    share = sum(verdict.credit for verdict in verdicts) / count
    if exercise.kind is Kind.JUDGEMENT:
        # Some answers to a few questions can be guessed, so each wrong one costs more than its share: one
        # of 24 costs a third of the points, and with six wrong nothing is left.
        return max(0.0, 1 - 4 * (1 - share)) ** 2
    # The values are right, but were computed in a way that the task forbids. Cases in which both ways
    # are the same earn nothing.
    missed = any(verdict.partial for verdict in verdicts)
    return min(share, 0.5) if missed else share


def _not_judged(exercise: Exercise, found: Answer, fault: CheckFault) -> CheckResult:
    if fault.is_odd:
        message = (
            f"We could not check your return value. {fault}. If this is what the task asks for, the bug is "
            "ours: please report it."
        )
        result = _result(exercise, found, Outcome.WRONG, message=message)
    else:
        message = f"This check is at fault, not your answer. Please report it: {fault}"
        result = _result(exercise, found, Outcome.FAULT, message=message)
    return replace(result, unjudged=fault.unjudged)


def _result(
    exercise: Exercise, found: Answer | Problem, outcome: Outcome, message: str = ""
) -> CheckResult:
    return CheckResult(
        exercise.name,
        exercise.heading,
        outcome,
        message=message,
        out_of=exercise.points,
        notes=found.notes,
        rules=tuple(rule.text for rule in exercise.rules),
    )
