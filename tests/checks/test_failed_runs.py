"""Each kind of failure is the first match for some failed run, and determines its outcome and advice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.check_result import Outcome
from helpers.checks.case import Case
from helpers.checks.failed_runs import FAILURES, FailedRun, FailureKind, find_kind
from helpers.checks.failure_advice import CrashAdvice, HangAdvice
from helpers.checks.registry import get
from helpers.ranks.failures import (
    Deadlock,
    HostLost,
    RankDied,
    RankError,
    RankFailed,
    RankTimeout,
)
from helpers.ranks.run import RankFailure, Run
from helpers.ranks.world import FLOOD_ERROR
from helpers.trace.events import Diagnosis, OtherWait, Place, Trace

WAITS = (OtherWait(0, "in recv"), OtherWait(1, "in recv"))


def raised(kind: str, message: str, source: str = "") -> RankFailed:
    return RankFailed(RankError(0, kind, message, (Place("a.py", 1, "f", "", source),)))


EXAMPLES: dict[str, tuple[RankFailure, Outcome]] = {
    "own stub": (raised("NotImplementedError", ""), Outcome.NOT_ATTEMPTED),
    "stub of a different exercise": (
        raised("NotImplementedError", "Exercise 4.1: write it"),
        Outcome.CRASHED,
    ),
    "missing wait": (Deadlock(Diagnosis("never_waited", "", "", WAITS)), Outcome.DEADLOCKED),
    "deadlock": (Deadlock(Diagnosis("cycle", "", "", WAITS)), Outcome.DEADLOCKED),
    "busy machine": (RankTimeout(3.0, WAITS, by_the_clock=True), Outcome.TOO_SLOW),
    "timeout": (RankTimeout(3.0, WAITS), Outcome.TIMED_OUT),
    "limit: memory": (raised("MemoryError", ""), Outcome.TOO_MUCH_MEMORY),
    "limit: processes": (
        raised("RuntimeError", "can't start new thread"),
        Outcome.TOO_MANY_PROCESSES,
    ),
    "limit: files": (raised("OSError", "[Errno 24] Too many open files"), Outcome.TOO_MANY_FILES),
    "limit: disk": (RankDied(0, "SIGXFSZ", -25, ""), Outcome.DISK_FULL),
    "limit: output": (raised(FLOOD_ERROR, ""), Outcome.FLOODED),
    "limit: processor time": (RankDied(0, "SIGXCPU", -24, ""), Outcome.TIMED_OUT),
    "killed": (RankDied(0, "SIGKILL", -9, ""), Outcome.CRASHED),
    "exception": (raised("KeyError", "'x'"), Outcome.CRASHED),
    "lost host": (HostLost("a", [0], "no answer", WAITS, ()), Outcome.FAULT),
    "exit": (RankDied(0, "SIGABRT", -6, ""), Outcome.CRASHED),
}
ABOUT_TASK = "Cut it into {n} parts."


def failed_run(failure: RankFailure) -> FailedRun:
    exercise = replace(
        get("ping_pong"),
        failed=(CrashAdvice(".*", ABOUT_TASK, applies_if_killed=True), HangAdvice(ABOUT_TASK)),
    )
    case = Case("a case", [()] * 2, 0)
    return FailedRun(exercise, case, Run(2, [None] * 2, [""] * 2, Trace(2), failure), failure)


def test_examples_cover_every_failure_kind() -> None:
    assert [kind.name for kind in FAILURES] == [*EXAMPLES]


@pytest.mark.parametrize("name", EXAMPLES)
def test_first_matching_failure_kind_is_expected(name: str) -> None:
    failure, outcome = EXAMPLES[name]
    kind = find_kind(failed_run(failure))
    assert (kind.name, kind.outcome) == (name, outcome)


@pytest.mark.parametrize("kind", FAILURES, ids=lambda kind: kind.name)
def test_exercise_advice_precedes_general_advice(kind: FailureKind) -> None:
    failed = failed_run(EXAMPLES[kind.name][0])
    has_entry = any(entry.applies_to(failed.case, failed.run) for entry in failed.exercise.failed)
    is_of_exercise = kind.advice(failed) == "Cut it into 2 parts."
    assert is_of_exercise is (has_entry and kind.is_about_task)
