"""Find answers that are right only in the first call in a process, because they keep state.

    a case passes in a separate world only --> run it twice, or after another case, in one world
        the second call fails --> a list or number outlives the call: a global name, a default argument, ...

A case that passes in a separate world has passed, because the shared world may have failed because of another
case, for example one that left a message behind. Only a call that fails directly after a clean and right call
shows that some state outlives a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from helpers.check_result import Outcome
from helpers.checks.case_runs import CaseRun, judge_case
from helpers.checks.worlds import Flooded, Turn, Worlds, is_clean

SECOND_CALL_ADVICE = (
    "This case passes in the first call, and fails only after another call. So something outlives "
    "a call: a global variable, an attribute of a class or function, or a default argument such as "
    "`parts=[]`, which is created once. Create it inside the function."
)
_MAX_SIZES = 2
"""Number of world sizes to try. Running a world takes 50 ms, or more if the answer fails."""
_STATE_OUTCOMES = frozenset({Outcome.WRONG, Outcome.CRASHED, Outcome.DEADLOCKED})
# A program may leave the process group at its end, like a program that runs in a separate process.
_LEFT_GROUP = "process group has not been initialized"


def find_second_call_failure(
    worlds: Worlds, suspects: Sequence[Turn], groups: Sequence[Sequence[Turn]]
) -> CaseRun | None:
    """Return the run of a case that fails after another case, although both pass in separate worlds.

    suspects: turns that passed in separate worlds, but not in a shared one. groups: all turns, by world size.
    Raise CheckFault.
    """
    sizes: set[int] = set()
    for turn in suspects:
        size = turn.case.world_size
        if size in sizes or not (worlds.exercise.may_share_world and turn.may_share):
            continue
        if len(sizes) == _MAX_SIZES:
            break
        sizes.add(size)
        # a case has the same root and shapes each time, so an answer reuses all of its state
        for first in (turn, *_other_turns(turn, groups)):
            with suppress(Flooded):
                if (run := _run_after(worlds, first, turn)) is not None:
                    return run
    return None


def _other_turns(turn: Turn, groups: Sequence[Sequence[Turn]]) -> list[Turn]:
    """Return one other case of the same size, or [] if there is none."""
    size = turn.case.world_size
    return [
        other
        for group in groups
        for other in group
        if other.case is not turn.case and other.case.world_size == size and other.may_share
    ][:1]


def _run_after(worlds: Worlds, first: Turn, second: Turn) -> CaseRun | None:
    """Run two turns in one world; return the run of the second if it fails because of the first."""
    pair = worlds.run_pair(first, second)
    if pair is None:
        return None
    first_run, second_run = pair
    if first_run is not None and not (
        is_clean(first_run.run.trace) and judge_case(worlds.exercise, first_run).passed
    ):
        return None
    verdict = judge_case(worlds.exercise, second_run)
    if verdict.outcome not in _STATE_OUTCOMES or _LEFT_GROUP in verdict.message:
        return None
    if first_run is None:  # the trace of a world that failed contains the calls of both turns
        verdict = replace(verdict, broken=(), broken_rules=())
    return CaseRun(second, replace(verdict, advice=SECOND_CALL_ADVICE), second_run, isolated=True)
