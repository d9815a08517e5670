"""Check one answer on the cases of its exercise, for `check` and for every grader.

    Exercise.draw -> cases -- run_groups --> a verdict for each -- show the first that failed --> CheckResult

`case_runs` runs the answer and judges each case. If some failed, `counterexample` chooses the case to show,
runs it in a separate world, and looks for advice. Only that run is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from helpers.answers.build import Answer, Problem, defined_in
from helpers.answers.data import NO_ATTEMPT
from helpers.check_result import CaseVerdict, CheckResult, Outcome
from helpers.checks.case import Case
from helpers.checks.case_runs import CaseRun, flooded_run, group_cases, run_groups, run_isolated
from helpers.checks.counterexample import (
    Presentation,
    choose_shown_run,
    easiest_to_read,
    has_hard_numbers,
)
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.kinds import Kind
from helpers.checks.load_answer import ANSWER_FILE
from helpers.checks.match_mistakes import Matches
from helpers.checks.registry import exercises
from helpers.checks.right_values import draw, fill_case_set
from helpers.checks.second_call import find_second_call_failure
from helpers.checks.worlds import Flooded, Turn, Worlds
from helpers.ranks.cells import place_of
from helpers.ranks.connection import Servers
from helpers.ranks.failures import LaunchError
from helpers.trace.events import Place

NameCell = Callable[[int], str]
"""Called with the index of a cell; returns the reader's name for it: "cell 7", "cell [12]"."""

# A case that failed in a shared world may pass in a separate one. After this many confirmed failures, assume
# that the remaining cases fail too. An answer that is right only in a process's first call passes every case
# in a separate world, but is still wrong.
_MAX_ISOLATED_RUNS = 8
# Maximum number of called answers to other exercises that are also tried if an answer fails.
_MAX_CALLED_ANSWERS = 3


def grade(
    exercise: Exercise,
    answer: Answer | Problem,
    name_cell: NameCell,
    secret: str = VISIBLE_SECRET,
    *,
    every_case: bool = True,
    connection: Servers | None = None,
    record_values: bool = False,
    matches: Matches | None = None,
) -> CheckResult:
    """Try an answer, or report why there is none. Whatever the answer does, this function raises no error.

    every_case: whether to continue after a failed case, so that the points are exact. If not, the outcome and
    the advice are the same, but are found sooner. connection: the rank server that runs the answer, by
    default this process's server. record_values: whether to record tensor values in cases that run in a
    separate world, as failing cases do.
    """
    if isinstance(answer, Problem):
        outcome = Outcome.NOT_ATTEMPTED if answer.kind in NO_ATTEMPT else Outcome.UNREADABLE
        return _make_result(exercise, answer, outcome, message=answer.message)
    visible = secret == VISIBLE_SECRET
    worlds = Worlds(
        exercise, [answer.source], _make_place_finder(answer, name_cell), connection, record_values
    )
    # learners never see the advice on a hidden case
    is_for_learner = matches is None and visible
    advice = {} if is_for_learner else matches
    with use_one_thread():
        check = _CheckOptions(worlds, secret, every_case, advice, is_for_learner)
        result = _check_answer(check, answer)
        if result.passed or result.outcome is Outcome.FAULT or not visible:
            return result
        return replace(
            result, notes=(*result.notes, *_notes_on_called_answers(worlds, answer, result))
        )


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Draw and judge in one thread: on a busy machine, torch's threads make small sums ten times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _make_place_finder(answer: Answer, name_cell: NameCell) -> Callable[[str, int, str], Place]:
    """Return a function that maps a line of an answer's source to a place in the learner's notebook."""

    def place(file: str, line: int, function: str) -> Place:
        position = answer.place(line) if file == ANSWER_FILE else None
        if position is None:
            return place_of(file, line, function)
        lines = answer.source.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return Place(file, position[1], function, name_cell(position[0]), text)

    return place


def _notes_on_called_answers(worlds: Worlds, answer: Answer, result: CheckResult) -> list[str]:
    """Return the names of wrong answers to other exercises that this answer calls.

    The called answers are tried on cases of the shown world size. result: the result of the calling answer.
    If that answer was attempted, the check has replaced called stubs with right answers.
    """
    notes = []
    own_name, size = worlds.exercise.name, result.run.world_size if result.run is not None else 0
    called_names = [name for name in defined_in(answer) if name in exercises() and name != own_name]
    for name in called_names[:_MAX_CALLED_ANSWERS]:
        called_exercise = exercises()[name]
        called_worlds = replace(worlds, exercise=called_exercise, record_values=False)
        check = _CheckOptions(called_worlds, VISIBLE_SECRET, every_case=False)
        skipped = [
            index for index, case in enumerate(called_exercise.draw()) if case.world_size != size
        ]
        outcome = _check_answer(check, replace(answer, name=name), skipped).outcome
        is_replaced_stub = outcome is Outcome.NOT_ATTEMPTED and result.outcome is not outcome
        # a fault of the check says nothing about the called answer, because a grader has not yet run its
        # reference
        if outcome not in {Outcome.PASSED, Outcome.FAULT} and not is_replaced_stub:
            notes.append(
                f"`{name}` ({called_exercise.number}), which this answer calls, fails its own check. Fix "
                "it first."
            )
    return notes


@dataclass(frozen=True)
class _CheckOptions:
    """Options for checking one answer.

    matches: the earlier results of `match_mistakes`; None if no advice is needed. is_for_learner: whether a
    learner reads the result.
    """

    worlds: Worlds
    secret: str
    every_case: bool
    matches: Matches | None = None
    is_for_learner: bool = False

    @property
    def own_server(self) -> bool:
        return self.worlds.connection is None


def _check_answer(
    options: _CheckOptions, answer: Answer, skipped: Collection[int] = ()
) -> CheckResult:
    exercise = options.worlds.exercise
    try:
        cases = draw(exercise, options.secret, own_server=options.own_server)
        groups, last_group = group_cases(exercise, cases)
        if skipped:
            skipped_ids = {id(cases[index]) for index in skipped}
            groups, last_group = (
                _drop_cases(skipped_ids, groups),
                _drop_cases(skipped_ids, last_group),
            )
        runs = _run_and_choose(options, cases, groups)
        if all(run.passed for run in runs):
            runs += _run_and_choose(options, cases, last_group)
    except CheckFault as fault:
        return _fault_result(exercise, answer, fault)
    except LaunchError as error:
        return _make_result(exercise, answer, Outcome.CRASHED, message=str(error))
    return combine_verdicts(exercise, answer, _keep_verdicts(runs, options.every_case), len(cases))


def _run_and_choose(
    options: _CheckOptions, cases: Sequence[Case], groups: Sequence[Sequence[Turn]]
) -> list[CaseRun]:
    """Run all groups; replace the first failing run with the run to show."""
    runs = run_groups(
        options.worlds, groups, options.every_case, run_next_size=options.matches is not None
    )
    for _ in range(_MAX_ISOLATED_RUNS):
        first_failed = next((index for index, run in enumerate(runs) if not run.passed), None)
        if first_failed is None:
            break
        if options.matches is not None:  # swap the first failing run with the easiest to read
            easiest_index = runs.index(easiest_to_read(runs[first_failed], runs))
            runs[first_failed], runs[easiest_index] = runs[easiest_index], runs[first_failed]
        failing = runs[first_failed]
        runs[first_failed] = _run_shown_case(options, cases, failing, runs)
        if runs[first_failed].passed and not failing.isolated:
            second_call = find_second_call_failure(options.worlds, [failing.turn], groups)
            runs[first_failed] = second_call or runs[first_failed]
        if not runs[first_failed].passed:
            break
    if runs and all(run.passed for run in runs):
        suspects = [run.turn for run in runs if run.isolated]
        if second_call := find_second_call_failure(options.worlds, suspects, groups):
            index = next(i for i, run in enumerate(runs) if run.turn is second_call.turn)
            runs[index] = second_call
    return runs


def _run_shown_case(
    options: _CheckOptions, cases: Sequence[Case], failing: CaseRun, runs: Sequence[CaseRun]
) -> CaseRun:
    if options.matches is None:
        return failing if failing.isolated else run_isolated(options.worlds, failing.turn)

    def simplify_case(case: Case) -> Case | None:
        if not has_hard_numbers(case):
            return None
        world_size = case.world_size
        same_size = [other for other in cases if other.world_size == world_size]
        case_set = (options.secret, f"small {world_size}")
        small_cases = fill_case_set(
            options.worlds.exercise, case_set, own_server=options.own_server
        )
        small_case = next(
            small_twin
            for original, small_twin in zip(same_size, small_cases, strict=True)
            if original is case
        )
        # if a size depends on a drawn number, the simplified case is a different case
        return small_case if small_case.label == case.label else None

    try:
        return choose_shown_run(
            Presentation(options.worlds, simplify_case, options.matches, options.is_for_learner),
            failing,
            runs,
        )
    except Flooded:
        return flooded_run(options.worlds.exercise, failing.turn)


def _keep_verdicts(runs: Sequence[CaseRun], every_case: bool) -> list[CaseVerdict]:
    """Return all verdicts, or the verdicts up to and including the first failing verdict.

    Only the first failing verdict keeps its advice.
    """
    kept: list[CaseVerdict] = []
    for run in runs:
        if all(verdict.passed for verdict in kept):
            kept.append(run.verdict)
        elif every_case:
            wrong = run.verdict.outcome is Outcome.WRONG
            kept.append(replace(run.verdict, advice="") if wrong else run.verdict)
    return kept


def _drop_cases(case_ids: Collection[int], groups: Sequence[Sequence[Turn]]) -> list[list[Turn]]:
    """Return the groups without the cases that have these id() values."""
    kept_groups = [[turn for turn in group if id(turn.case) not in case_ids] for group in groups]
    return [group for group in kept_groups if group]


def combine_verdicts(
    exercise: Exercise, answer: Answer, verdicts: Sequence[CaseVerdict], count: int
) -> CheckResult:
    """Combine the verdicts of an answer's cases into a result. count: the number of the answer's cases."""
    failed: Iterator[CaseVerdict] = (verdict for verdict in verdicts if not verdict.passed)
    worst = next(failed, None)
    sizes = {verdict.run.world_size for verdict in verdicts if verdict.run is not None}
    return replace(
        _make_result(exercise, answer, worst.outcome if worst else Outcome.PASSED),
        cases=tuple(verdicts),
        sizes=() if exercise.kind.is_alone else tuple(sorted(sizes)),
        given=worst.given if worst else (),
        # round to the displayed precision, so that no two outputs differ in the second decimal place
        points=round(exercise.points * _earned_share(exercise, verdicts, count), 1)
        if count
        else 0.0,
    )


def _earned_share(exercise: Exercise, verdicts: Sequence[CaseVerdict], count: int) -> float:
    """Return the share of the exercise's points that an answer earns."""
    share = sum(verdict.credit for verdict in verdicts) / count
    if exercise.kind is Kind.JUDGEMENT:
        # Answers to a few questions can be guessed, so each wrong answer costs more than its share: one wrong
        # answer of 24 costs a third of the points, and six cost all of them.
        return max(0.0, 1 - 4 * (1 - share)) ** 2
    # The values are right, but were computed in a forbidden way. Cases that pass because the forbidden and
    # the allowed way coincide earn no extra points.
    breaks_rules = any(verdict.credit and not verdict.passed for verdict in verdicts)
    return min(share, 0.5) if breaks_rules else share


def _fault_result(exercise: Exercise, answer: Answer, fault: CheckFault) -> CheckResult:
    if fault.is_odd:
        message = (
            f"We could not check your return value. {fault}. If this is what the task asks for, the bug is "
            "ours: please report it."
        )
        result = _make_result(exercise, answer, Outcome.WRONG, message=message)
    else:
        message = f"This check is at fault, not your answer. Please report it: {fault}"
        result = _make_result(exercise, answer, Outcome.FAULT, message=message)
    return replace(result, unjudged=fault.unjudged)


def _make_result(
    exercise: Exercise, answer: Answer | Problem, outcome: Outcome, message: str = ""
) -> CheckResult:
    return CheckResult(
        exercise.name,
        exercise.heading,
        outcome,
        message=message,
        out_of=exercise.points,
        notes=answer.notes,
        rules=tuple(rule.text for rule in exercise.rules),
    )
