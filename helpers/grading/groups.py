"""Group a class's wrong answers by behavior, so that one sentence can be written for each group.

    records of classes --> distinct wrong answers --> reader: runs each in a sandbox on the visible cases,
                                                  | and compares their behavior
    groups, largest first <--a line: what is alike-'

Two answers are alike if they behave alike in every case that was run. They are compared as
`checks.match_mistakes` compares an answer with a known mistake. Each answer runs in a separate sandbox. A
capped child reads the answers' data. If it dies, it is started again without the answer that killed it.
`course mistakes RESULTS` calls this module.
"""

from __future__ import annotations

import ast
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from multiprocessing.connection import Connection, Pipe

from helpers.check_result import CaseRecord, Outcome
from helpers.checks.execution import Execution
from helpers.checks.exercise import Exercise
from helpers.checks.match_mistakes import behave_alike
from helpers.checks.registry import exercises
from helpers.checks.worlds import Flooded, Turn, Worlds
from helpers.grading.judge_process import limit_resources, set_up_child
from helpers.grading.record import ExerciseRecord, Record
from helpers.grading.sandbox.levels import Plan, Sandbox
from helpers.ranks.connection import ServerExited
from helpers.ranks.failures import LaunchError
from helpers.ranks.processes import kill_process

# Outcomes of answers whose behavior can be compared with that of other answers.
_COMPARABLE = {
    o.value for o in (Outcome.WRONG, Outcome.CRASHED, Outcome.DEADLOCKED, Outcome.FORBIDDEN)
}
_ANSWER_S, _ANSWER_CPU_S = 90.0, 60.0
"""Limits for running one answer: wall time and processor time of its sandbox."""
_START_S = 60.0
_MAX_ALONE = 2
"""Number of cases to rerun in separate worlds if they fail in a shared one. Each may take over a second."""

# (world size, index of a case among the cases of that size) -> an answer's behavior.
_Behavior = dict[tuple[int, int], Execution]


@dataclass(frozen=True)
class WrongAnswer:
    """One distinct wrong program for an exercise, with all learners who handed it in.

    learners: (class, learner) pairs. case: the first failed visible case, or None if only hidden cases
    failed.
    """

    exercise: str
    source: str
    outcome: str
    learners: tuple[tuple[str, str], ...]
    case: CaseRecord | None

    @property
    def advice(self) -> str:
        """The advice shown to its authors, or ""."""
        return self.case.advice if self.case else ""


@dataclass(frozen=True)
class AnswerGroup:
    """Wrong answers that behaved alike, the shortest program first."""

    answers: tuple[WrongAnswer, ...]

    @property
    def learners(self) -> set[tuple[str, str]]:
        return {who for answer in self.answers for who in answer.learners}

    @property
    def advice(self) -> str:
        return next((answer.advice for answer in self.answers if answer.advice), "")


def wrong_answers(classes: Sequence[tuple[str, Sequence[Record]]]) -> list[WrongAnswer]:
    """Return the distinct wrong programs in the course's order.

    classes: the name and the records of each class.
    """
    found: dict[tuple[str, str], list[tuple[str, str, ExerciseRecord]]] = defaultdict(list)
    for name, records in classes:
        for record in records:
            for each in record.exercises:
                source = normalize_program(each.answer) if each.outcome in _COMPARABLE else ""
                if source and each.name in exercises():
                    found[each.name, source].append((name, record.learner, each))
    order = list(exercises())
    answers = []
    for (name, source), handed_in in found.items():
        first = handed_in[0][2]
        failed = (case for case in first.cases if not case.hidden and case.outcome != "passed")
        shown = next(failed, None)
        learners = tuple(sorted({(group, learner) for group, learner, _ in handed_in}))
        outcome = shown.outcome if shown else first.outcome
        answers.append(WrongAnswer(name, source, outcome, learners, shown))
    return sorted(answers, key=lambda a: (order.index(a.exercise), len(a.source), a.source))


def normalize_program(source: str) -> str:
    """Return an answer without comments, docstrings and layout, or "" if it cannot be parsed."""
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_docstring(body[0]):
                node.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if tree.body else ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def group_answers(answers: Sequence[WrongAnswer], plan: Plan) -> dict[str, list[AnswerGroup]]:
    """Run all answers and return the groups of each exercise, the largest first.

    An answer without comparable behavior forms a separate group.
    """
    labels: dict[int, int] = {}
    left = list(range(len(answers)))
    while left:
        done, died_over = _label_in_child(answers, left, plan)
        labels.update(done)
        if died_over is None:
            break
        # The behaviors of this exercise were lost with the child, so its other answers run again.
        again = answers[died_over].exercise
        left = [
            i for i in left if i != died_over and (i not in done or answers[i].exercise == again)
        ]
    groups: dict[str, dict[int, list[WrongAnswer]]] = defaultdict(lambda: defaultdict(list))
    for index, answer in enumerate(answers):
        groups[answer.exercise][labels.get(index, index)].append(answer)
    return {
        name: sorted(
            (AnswerGroup(tuple(own)) for own in each.values()),
            key=lambda group: (-len(group.learners), group.answers[0].source),
        )
        for name, each in groups.items()
    }


def _label_in_child(
    answers: Sequence[WrongAnswer], remaining: Sequence[int], plan: Plan
) -> tuple[dict[int, int], int | None]:
    """Run the answers in a child. Return the labels, and the answer that killed the child, if any.

    The label of an answer is the index of the first answer that behaves like it.
    """
    ours, theirs = Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        try:
            set_up_child()
            _label_answers(answers, remaining, plan, theirs)
            os._exit(0)
        finally:
            os._exit(1)
    theirs.close()
    labels: dict[int, int] = {}
    at: int | None = None
    with ours, suppress(EOFError):
        while ours.poll(_START_S + _ANSWER_S):
            # The course's code writes only indices, as JSON, never a pickle.
            at, same = json.loads(ours.recv_bytes())
            if same is not None:
                labels[at] = same
        kill_process(pid)
    _, status = os.waitpid(pid, 0)
    return labels, at if status else None


def _label_answers(
    answers: Sequence[WrongAnswer], remaining: Sequence[int], plan: Plan, pipe: Connection
) -> None:
    """Run each answer, and report the first answer with the same behavior. The function runs in the child."""
    with plan:
        for name, own in groupby(remaining, key=lambda index: answers[index].exercise):
            exercise = exercises()[name]
            firsts: list[tuple[int, _Behavior]] = []
            for index in own:
                pipe.send_bytes(json.dumps([index, None]).encode())
                limit_resources()
                seen = _run_answer(exercise, answers[index].source, plan)
                # outcomes differ if a rule was broken or a hidden case failed
                alike = (i for i, s in firsts if seen and _behave_alike(exercise, s, seen))
                same = next(alike, index)
                if same == index:
                    firsts.append((index, seen))
                pipe.send_bytes(json.dumps([index, same]).encode())


def _run_answer(exercise: Exercise, source: str, plan: Plan) -> _Behavior:
    """Run one answer on the visible cases in a new sandbox. Return {} if no sandbox could be started."""
    seen: _Behavior = {}
    alone = 0
    # a failure here is caused by the answer, so the earlier cases count
    with (
        suppress(LaunchError, ServerExited, OSError),
        plan.lock.hold_shared(),
        Sandbox(plan, preload=exercise.needs_wrappers) as sandbox,
    ):
        sandbox.end_after(_ANSWER_S, _ANSWER_CPU_S)
        worlds = Worlds(exercise, [source], connection=sandbox.connection)
        for size, cases in groupby(exercise.draw(), key=lambda case: case.world_size):
            turns = [Turn(case, number) for number, case in enumerate(cases)]
            with suppress(Flooded):
                tries = worlds.run_turns(turns) if _can_share_world(exercise, turns) else None
                if tries is not None:
                    seen.update({(size, tried.number): tried for tried in tries[0]})
                elif alone < _MAX_ALONE:
                    alone += 1
                    seen[size, 0] = worlds.run_alone(turns[0])
    return seen


def _can_share_world(exercise: Exercise, turns: Sequence[Turn]) -> bool:
    return exercise.may_share_world and all(turn.may_share for turn in turns) and len(turns) > 1


def _behave_alike(exercise: Exercise, behavior: _Behavior, other_behavior: _Behavior) -> bool:
    return behavior.keys() == other_behavior.keys() and all(
        behave_alike(exercise, behavior[key], other_behavior[key]) for key in behavior
    )
