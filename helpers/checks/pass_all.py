"""Try an answer on the cases of several secrets together, which takes half as many worlds.

    Exercise.draw, for each secret -> cases -- one world per size --> all pass: the results
                                                                          `--> else: None

A grader tries this first, because most answers of a class are right. If an answer fails, no part of the run
may be shown, because each rank had the inputs of all secrets, including hidden ones, and could return them as
its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from helpers.answers.build import Answer
from helpers.check_result import CaseVerdict, CheckResult
from helpers.checks.case_runs import group_cases, judge_case, run_in_one_world
from helpers.checks.check_answer import combine_verdicts, use_one_thread
from helpers.checks.exercise import Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.right_values import draw
from helpers.checks.worlds import Flooded, Turn, Worlds
from helpers.ranks.connection import Servers
from helpers.ranks.failures import LaunchError


def pass_all(
    exercise: Exercise, answer: Answer, secrets: Sequence[str], connection: Servers
) -> list[CheckResult] | None:
    """Return a passing result for each secret, or None if a case fails or cannot share a world.

    If the result is None, nothing is known about the answer, and `grade` must try it.
    """
    if not exercise.may_share_world:
        return None
    with use_one_thread():
        try:
            return _passing_results(exercise, answer, secrets, connection)
        except (CheckFault, Flooded, LaunchError):
            return None


def _passing_results(
    exercise: Exercise, answer: Answer, secrets: Sequence[str], connection: Servers
) -> list[CheckResult] | None:
    case_sets = []
    for secret in secrets:
        case_sets.append(draw(exercise, secret, own_server=False))
        if not all(Turn(case, 0).may_share for case in case_sets[-1]):
            return None
    grouped = [group_cases(exercise, cases) for cases in case_sets]
    turns = [turn for groups, _ in grouped for group in groups for turn in group]
    turns.sort(key=lambda turn: turn.case.world_size)
    groups = [list(group) for _, group in groupby(turns, key=lambda turn: turn.case.world_size)]
    groups += [group for _, last_groups in grouped for group in last_groups]
    worlds = Worlds(exercise, [answer.source], connection=connection)
    passed: dict[int, CaseVerdict] = {}
    for group in groups:
        verdicts_by_case = _judge_group(worlds, group)
        if not all(
            id(turn.case) in verdicts_by_case and verdicts_by_case[id(turn.case)].passed
            for turn in group
        ):
            return None
        passed |= verdicts_by_case
    sets = [[passed[id(case)] for case in cases] for cases in case_sets]
    return [combine_verdicts(exercise, answer, verdicts, len(verdicts)) for verdicts in sets]


def _judge_group(worlds: Worlds, group: Sequence[Turn]) -> dict[int, CaseVerdict]:
    """Judge cases of one size, except those that could not share the world. Keys are id() of the cases."""
    if len(group) > 1:
        return {key: run.verdict for key, run in run_in_one_world(worlds, group).items()}
    return {id(turn.case): judge_case(worlds.exercise, worlds.run_alone(turn)) for turn in group}
