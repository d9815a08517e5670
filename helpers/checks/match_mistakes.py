"""Find the known mistake that explains a wrong answer by behaving like it in the same cases.

    the shown case, one more wrong, two passed       --> every mistake --> mistakes alike on all of them
    the cases of some other world sizes              --> those         --> mistakes failing in the same cases
    further cases, if several sentences are left     --> those         --> mistakes alike on all of them
    newly drawn cases, if several are still left     --> those         --> one, or none

Mistakes run under the same conditions as the answer: the same cases and world size, the same late rank, the
same poison values in buffers. If two mistakes with different sentences cannot be distinguished, neither
sentence is shown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import groupby
from typing import Any

import torch

from helpers.check_result import Outcome
from helpers.checks.case import Case, Measured
from helpers.checks.compare import find_huge_range, same
from helpers.checks.execution import Execution
from helpers.checks.exercise import Exercise
from helpers.checks.judge import judge
from helpers.checks.kinds import Kind
from helpers.checks.known_outcomes import recognize_mistake
from helpers.checks.limits import is_ended_by_limit
from helpers.checks.mistakes import KnownMistake, known_mistakes
from helpers.checks.named_parts import NamedParts
from helpers.checks.right_values import ADVICE_SECRET, Reference, draw
from helpers.checks.worlds import Flooded, Turn, Worlds, is_clean
from helpers.ranks import wire
from helpers.ranks.failures import Deadlock, RankDied, RankError, RankFailed, RankTimeout
from helpers.ranks.run import RankFailure, Run

# The largest number of further cases of one world size, and of cases drawn to separate two mistakes.
_MAX_OTHER_CASES = 4
# Parts of an error's text that differ from run to run: addresses, paths, ports, and the prefix with a time in
# lines logged by torch.
_VARYING_TEXT_PATTERN = re.compile(
    r"0x[0-9a-f]+|/[\w./-]+|\d+\.\d+\.\d+\.\d+|:\d+\b|\[rank\d+\]|\[[A-Z]\d{4} [^\]]*\]"
    # pybind's stack of a future's callback, whose depth depends on whether the future was already done
    r"|\n\nAt:\n[\s\S]*"
)


_MORE_IS_WRONG = "(Something else is wrong as well.)"
Alike = Callable[[Exercise, Execution, Execution], bool]
"""Function that returns whether an answer and a known mistake behave alike in a case."""
Matches = MutableMapping[str, str]
"""Digest of an answer's behavior -> title of the mistake that explains it, or "" if there is none."""


def find_mistake(
    answer: Worlds,
    shown_case: Execution,
    outcome: Outcome,
    wrong_cases: Sequence[Execution],
    passed_cases: Sequence[Execution],
    matches: Matches,
) -> KnownMistake | None:
    """Return the mistake that behaves like the answer, or None.

    shown_case, outcome: the case shown to the learner, and its outcome. wrong_cases, passed_cases: other
    cases in which the answer was wrong or right. matches: earlier results, to which this result is added, so
    that each wrong behavior is looked up once per class.
    """
    exercise = answer.exercise
    # all programs that exceed a limit end in the same way, whatever their mistakes
    if is_ended_by_limit(shown_case.run.failure):
        return None
    if exercise.kind is Kind.SCRIPT:  # running a script takes seconds
        return recognize_mistake(exercise, shown_case)
    mistakes = [mistake for mistake in known_mistakes(exercise) if mistake.outcome is outcome]
    if not mistakes:
        return None
    key = _behavior_digest(exercise, outcome, [shown_case, *wrong_cases, *passed_cases])
    cases = (shown_case, mistakes, wrong_cases, passed_cases)
    in_part = _has_comparable_part(shown_case)
    # the second search runs the same mistakes on the same cases
    with record_runs({}) if in_part and _recorded_runs is None else nullcontext():
        if key not in matches:
            matches[key] = _find_title(answer, *cases)
        part_key = f"{key} in part"
        if in_part and not matches[key] and part_key not in matches:
            matches[part_key] = _find_title(answer, *cases, alike_in_first_part)
    # look it up by title, because the mistake may have been found for another learner's answer
    title = matches[key] or matches.get(part_key, "")
    mistake = next((mistake for mistake in mistakes if mistake.title == title), None)
    if mistake is None or matches[key]:
        return mistake
    return replace(mistake, words=f"{mistake.words} {_MORE_IS_WRONG}")


def _behavior_digest(exercise: Exercise, outcome: Outcome, executions: Sequence[Execution]) -> str:
    """Return a digest of an answer's behavior in some cases.

    Two digests differ even if only the last digit of one value differs.
    """
    digest = hashlib.sha256(f"{exercise.name} {outcome.value}".encode())
    for execution in executions:
        run = execution.run
        digest.update(f"{run.world_size} {execution.number} {execution.changed}".encode())
        digest.update(f"{broken_rules(exercise, execution)} {_end_reason(run)}".encode())
        for value in run.values:
            value = value.found if isinstance(value, Measured) else value
            for chunk in wire.encode(value):
                digest.update(chunk)
    return digest.hexdigest()


def _find_title(
    answer: Worlds,
    shown_case: Execution,
    mistakes: Sequence[KnownMistake],
    wrong_cases: Sequence[Execution],
    passed_cases: Sequence[Execution],
    alike: Alike | None = None,
) -> str:
    """Return the title of the mistake that behaves like the answer (by default, in everything), or ""."""
    alike = alike or behave_alike
    size = shown_case.case.world_size
    same_size_wrong = [execution for execution in wrong_cases if execution.case.world_size == size]
    # a mistake that fails a case passed by the answer is a different mistake
    same_size_passed = [
        execution for execution in passed_cases if execution.case.world_size == size
    ]
    candidates = _similar_mistakes(
        answer,
        mistakes,
        [shown_case, *same_size_wrong[:1], *same_size_passed[:1], *same_size_passed[1:][-1:]],
        alike=alike,
    )
    # Cases of a different size reveal more than further cases of the same size.
    other_sizes = _cases_of_other_sizes(size, wrong_cases, passed_cases)
    for failing, passing in other_sizes:
        weak_cases = [*failing[1:], *passing] if _can_share(shown_case) else passing[:1]
        candidates = _similar_mistakes(answer, candidates, failing[:1], weak_cases, alike)
    if not other_sizes or len({mistake.words for mistake in candidates}) > 1:
        weak_cases = [*same_size_wrong[_MAX_OTHER_CASES:], *same_size_passed[1:-1]]
        candidates = _similar_mistakes(
            answer, candidates, same_size_wrong[1:_MAX_OTHER_CASES], weak_cases, alike
        )
    if len({mistake.words for mistake in candidates}) > 1:
        candidates = _similar_mistakes(
            answer, candidates, list(_run_on_further_cases(answer, shown_case)), alike=alike
        )
    if alike is alike_in_first_part and candidates:
        # a combination of two mistakes also explains this part, but claims more
        candidates = [min(candidates, key=lambda mistake: len(mistake.edit or mistake.source))]
    sentences = {mistake.words for mistake in candidates}
    return candidates[0].title if len(sentences) == 1 else ""


def _cases_of_other_sizes(
    size: int, wrong_cases: Sequence[Execution], passed_cases: Sequence[Execution]
) -> list[tuple[list[Execution], list[Execution]]]:
    """Return the failed and the passed cases of at most two other world sizes.

    These are the smallest size with failed cases and the size with the most passed cases. Running a world
    takes 50 ms.
    """
    failing = _group_by_size(size, wrong_cases)
    passing = _group_by_size(size, passed_cases)
    chosen_sizes = sorted(failing)[:1]
    remaining = sorted(set(passing) - set(chosen_sizes), key=lambda other: -len(passing[other]))
    return [
        (failing.get(world_size, []), passing.get(world_size, []))
        for world_size in [*chosen_sizes, *remaining[:1]]
    ]


def _group_by_size(
    excluded_size: int, executions: Sequence[Execution]
) -> dict[int, list[Execution]]:
    by_size: dict[int, list[Execution]] = {}
    for execution in executions:
        if execution.case.world_size != excluded_size:
            by_size.setdefault(execution.case.world_size, []).append(execution)
    return by_size


def _run_on_further_cases(answer: Worlds, shown_case: Execution) -> Iterable[Execution]:
    """Draw further cases and run the answer on them."""
    sizes = {shown_case.case.world_size}
    # use a separate secret, because the visible cases did not distinguish the mistakes
    own_server = answer.connection is None
    for case in draw(answer.exercise, ADVICE_SECRET, own_server=own_server):
        if case.world_size not in sizes and len(sizes) <= _MAX_OTHER_CASES:
            sizes.add(case.world_size)
            yield answer.run_alone(Turn(case, 0))


def _similar_mistakes(
    answer: Worlds,
    mistakes: Sequence[KnownMistake],
    cases: Sequence[Execution],
    weak_cases: Sequence[Execution] = (),
    alike: Alike | None = None,
) -> list[KnownMistake]:
    """Return the mistakes that behave like the answer in all of these cases. Run one world for each size.

    weak_cases: cases of the same size in which a mistake only needs to pass or fail like the answer.
    """
    candidates = list(mistakes)
    alike = alike or behave_alike
    for _, group in groupby([*cases, *weak_cases], key=_world_key):
        executions = list(group)
        worlds = replace(
            answer, programs=[mistake.source for mistake in candidates], record_values=False
        )
        turns = [Turn(expected.case, expected.number) for expected in executions]
        results = _run_or_reuse(worlds, turns, in_one_world=_can_share(executions[0]))
        candidates = [
            mistake
            for mistake, mistake_runs in zip(candidates, results, strict=True)
            if len(mistake_runs) == len(executions)
            and all(
                _pass_alike(answer.exercise, expected, execution)
                if any(expected is weak_case for weak_case in weak_cases)
                else alike(answer.exercise, expected, execution)
                for expected, execution in zip(executions, mistake_runs, strict=True)
            )
        ]
        if not candidates:
            break
    return candidates


def _world_key(execution: Execution) -> tuple[int, int]:
    """Return a key that is the same for cases that may share a world, and unique for any other case."""
    return execution.case.world_size, 0 if _can_share(execution) else id(execution.case)


def _can_share(execution: Execution) -> bool:
    # if the answer failed here, a program that fails in the same way would end the world for all others
    return Turn(execution.case, 0).may_share and execution.run.failure is None


def _pass_alike(exercise: Exercise, execution: Execution, other_execution: Execution) -> bool:
    return judge(exercise, execution).passed is judge(exercise, other_execution).passed


# Maps a program and a case to the run while `record_runs` is active; otherwise None.
_recorded_runs: dict[bytes, Execution] | None = None
_MAX_RECORDED_RUNS = 3000


@contextmanager
def record_runs(runs: dict[bytes, Execution]) -> Iterator[None]:
    """Keep the runs of known mistakes, so that a proof that compares all runs each once per case.

    Runs are large, because they contain all of the ranks' messages, so checks of learners' answers keep none.
    """
    global _recorded_runs
    previous, _recorded_runs = _recorded_runs, runs
    try:
        yield
    finally:
        _recorded_runs = previous
        if len(runs) > _MAX_RECORDED_RUNS:
            runs.clear()


def _run_or_reuse(
    worlds: Worlds, turns: Sequence[Turn], in_one_world: bool
) -> list[list[Execution]]:
    """Run all programs of `worlds` like `_run_programs`, unless their runs on these turns have been kept."""
    if _recorded_runs is None:
        return _run_programs(worlds, range(len(worlds.programs)), turns, in_one_world)
    recorded = _recorded_runs
    turn_keys = [_turn_key(worlds.exercise, turn) for turn in turns]
    keys = [
        [_digest_of(turn_key, source.encode()) for turn_key in turn_keys]
        for source in worlds.programs
    ]
    missing = [
        index
        for index, program_keys in enumerate(keys)
        if not all(key in recorded for key in program_keys)
    ]
    missing_worlds = replace(worlds, programs=[worlds.programs[index] for index in missing])
    new_runs = dict(
        zip(
            missing,
            _run_programs(missing_worlds, range(len(missing)), turns, in_one_world),
            strict=True,
        )
    )
    for index, runs in new_runs.items():
        if len(runs) == len(turns):
            recorded.update(zip(keys[index], runs, strict=True))
    return [
        new_runs[index]
        if index in new_runs
        else [
            replace(recorded[key], case=turn.case)
            for key, turn in zip(program_keys, turns, strict=True)
        ]
        for index, program_keys in enumerate(keys)
    ]


def _turn_key(exercise: Exercise, turn: Turn) -> bytes:
    """Return a key for a case's content, because for each answer the same cases are drawn as new objects."""
    case = turn.case
    code = f"{exercise.name} {exercise.case} {exercise.driver} {exercise.kind}"
    description = f"{code} {turn.number} {case.label}"
    input_bytes = [bytes(chunk) for part in case.given for chunk in wire.encode(list(part))]
    return _digest_of(description.encode(), str(case.env).encode(), *input_bytes)


def _digest_of(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def _run_programs(
    worlds: Worlds, programs: Sequence[int], turns: Sequence[Turn], in_one_world: bool
) -> list[list[Execution]]:
    """Run each program on each turn; return the runs, up to the failure if a program fails.

    in_one_world: whether to run all programs in one world, as long as each leaves it clean. If a program does
    not, each half of the programs is run in a separate world, and so on. If False, each program has separate
    worlds.
    """
    if in_one_world and len(programs) * len(turns) > 1:
        all_turns = [replace(turn, program=program) for program in programs for turn in turns]
        with suppress(Flooded):
            shared = worlds.run_turns(all_turns)
            if shared is not None:
                runs = shared[0]
                # Traces left behind by the last program cannot affect another program.
                if all(is_clean(execution.run.trace) for execution in runs[: -len(turns)]):
                    return [
                        runs[start : start + len(turns)]
                        for start in range(0, len(runs), len(turns))
                    ]
        if len(programs) > 1:
            half = len(programs) // 2
            return [
                *_run_programs(worlds, programs[:half], turns, in_one_world),
                *_run_programs(worlds, programs[half:], turns, in_one_world),
            ]
    results: list[list[Execution]] = []
    for program in programs:
        results.append([])
        with suppress(Flooded):
            for turn in turns:
                results[-1].append(worlds.run_alone(replace(turn, program=program)))
    return results


# --- the same behavior ----------------------------------------------------------------------------


def behave_alike(exercise: Exercise, execution: Execution, other: Execution) -> bool:
    """Return whether a check of this exercise can see no difference between two programs in a case.

    This is the case if both have the same failure, or if they have the same values within the check's
    tolerance, the same dtypes and shapes, the same changed inputs, and the same broken rules on every rank.
    """
    if execution.run.failure is not None or other.run.failure is not None:
        if _have_same_errors(execution.run.failure, other.run.failure):
            return True
        same_type = type(execution.run.failure) is type(other.run.failure)
        return same_type and _end_reason(execution.run) == _end_reason(other.run)
    case = execution.case
    try:
        if not all(
            _have_same_value(case, rank, execution.run.values[rank], other.run.values[rank])
            for rank in range(case.world_size)
        ):
            return False
    except Exception:
        return False  # a hostile rank may send values that cannot be compared
    if [*map(list, execution.changed)] != [*map(list, other.changed)]:
        return False
    return broken_rules(exercise, execution) == broken_rules(exercise, other)


def alike_in_first_part(exercise: Exercise, answer: Execution, mistake: Execution) -> bool:
    """Return whether a mistake explains the first part that is wrong in an answer with several mistakes.

    This part has the same wrong value on every rank, and all other parts that are wrong with the mistake are
    also wrong in the answer.
    """
    if not (_has_comparable_part(answer) and mistake.run.failure is None):
        return answer.run.failure is None and not any(answer.all_findings())
    right, ranks = answer.case.right, range(answer.case.world_size)
    assert isinstance(right, NamedParts)
    try:
        first = next(filter(None, (right.first_problem(answer.run.values[r], r)[0] for r in ranks)))
        return all(
            right.same(answer.run.values[rank], mistake.run.values[rank], rank, (first,))
            and set(right.wrong_parts(mistake.run.values[rank], rank))
            <= set(right.wrong_parts(answer.run.values[rank], rank))
            for rank in ranks
        )
    except Exception:
        return False  # a hostile rank may send values that cannot be compared


def _has_comparable_part(execution: Execution) -> bool:
    """Return whether the first wrong part has several numbers, which are unlikely to be equal by chance."""
    right = execution.case.right
    if execution.run.failure is not None or not isinstance(right, NamedParts):
        return False
    for rank, value in enumerate(execution.run.values):
        name, _ = right.first_problem(value, rank)
        if name:
            part = value.get(name)
            return isinstance(part, torch.Tensor) and part.numel() > 1
    return False


def _have_same_value(case: Case, rank: int, value: Any, other_value: Any) -> bool:
    if find_huge_range(value) or find_huge_range(other_value):
        return False
    if isinstance(value, Measured) and isinstance(other_value, Measured):
        value, other_value = value.found, other_value.found
    if isinstance(case.right, (NamedParts, Reference)):
        return case.right.same(value, other_value, rank)
    return same(other_value, value, case.tolerance, case.scale)


def broken_rules(exercise: Exercise, execution: Execution) -> list[bool]:
    """Return, for each rule of the exercise, whether it is broken."""
    return [bool(rule.problem(execution.run.trace, execution.case)) for rule in exercise.rules]


def _have_same_errors(failure: RankFailure | None, other: RankFailure | None) -> bool:
    """Return whether each run's first error was also raised in the other run, maybe not as the first.

    If several ranks raise different errors, the machine's load decides which error is the first.
    """
    if not (isinstance(failure, RankFailed) and isinstance(other, RankFailed)):
        return False
    return _error_key(failure.error) in map(
        _error_key, (other.error, *other.consequences)
    ) and _error_key(other.error) in map(_error_key, (failure.error, *failure.consequences))


def _error_key(error: RankError) -> tuple[str, str]:
    return error.kind, _VARYING_TEXT_PATTERN.sub("", error.message)


def _end_reason(run: Run) -> list[Any]:
    """Return the reason for a run's failure: the error, or each rank's waiting call; empty for a success."""
    failure = run.failure
    if isinstance(failure, RankFailed):
        return [*_error_key(failure.error)]
    if isinstance(failure, Deadlock):
        diagnosis = failure.diagnosis
        waits = [
            (wait.rank, wait.call, wait.event.peer if wait.event else None)
            for wait in diagnosis.waits
        ]
        return [diagnosis.kind, *waits]
    if isinstance(failure, RankDied):
        return [failure.rank, failure.signal]
    return [wait.call for wait in failure.waits] if isinstance(failure, RankTimeout) else []
