"""Judge a failed run by the first kind in `FAILURES` that applies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from helpers.check_result import Outcome
from helpers.checks.case import Case
from helpers.checks.exercise import Exercise
from helpers.checks.limits import LIMITS, Limit, exceeded_limit
from helpers.checks.missing_files import missing_file_advice
from helpers.checks.unwaited import missing_transfer_wait_advice
from helpers.ranks.failures import Deadlock, HostLost, RankDied, RankFailed, RankTimeout
from helpers.ranks.run import RankFailure, Run

TOO_SLOW_ADVICE = (
    "This answer failed only by exceeding the time limit, and the machine may have been busy. Check it again "
    "when nothing else is running."
)


@dataclass(frozen=True)
class FailedRun:
    """A case whose run failed."""

    exercise: Exercise
    case: Case
    run: Run
    failure: RankFailure

    @cached_property
    def limit(self) -> Limit | None:
        return exceeded_limit(self.failure)


@dataclass(frozen=True)
class FailureKind:
    """A kind of failure.

    advise: a function that returns the general advice, or "" if there is none.
    is_about_task: whether the exercise's advice, which takes the task into account, precedes the general
    advice.
    last_line: the text after the failure's description.
    """

    name: str
    applies: Callable[[FailedRun], bool]
    outcome: Outcome
    advise: Callable[[FailedRun], str] = lambda failed: ""
    is_about_task: bool = True
    last_line: str = ""

    def advice(self, failed: FailedRun) -> str:
        """Return advice on where to look first, or ""."""
        entries = failed.exercise.failed if self.is_about_task else ()
        words = (entry.advice for entry in entries if entry.applies_to(failed.case, failed.run))
        return failed.case.fill_facts(next(words, None) or self.advise(failed))

    def message(self, failed: FailedRun) -> str:
        """Return a description of how the run ended."""
        case = failed.case
        is_alone = case.world_size == 1 and (failed.exercise.kind.is_alone or not case.init)
        text = failed.failure.describe(is_alone=is_alone, with_launch_hint=False)
        return f"{text}\n{self.last_line}" if self.last_line else text


def find_kind(failed: FailedRun) -> FailureKind:
    """Return the first kind of the table that applies."""
    return next(kind for kind in FAILURES if kind.applies(failed))


def _is_own_stub(failure: RankFailed, exercise: Exercise) -> bool:
    """Return whether the exercise's stub was called.

    The answer may also call the stub of an earlier exercise, or raise a NotImplementedError of torch.
    """
    kind, message = failure.error.kind, failure.error.message
    if kind != "NotImplementedError":
        return False
    own_prefix = f"Exercise {exercise.number}" if exercise.number else "Exercise "
    return not message or message.startswith(own_prefix)


def _raised_own_stub(failed: FailedRun) -> bool:
    failure = failed.failure
    return isinstance(failure, RankFailed) and _is_own_stub(failure, failed.exercise)


def _called_stub(failed: FailedRun) -> str:
    """Return the number of the exercise whose stub was called, or ""."""
    failure = failed.failure
    if not isinstance(failure, RankFailed) or failure.error.kind != "NotImplementedError":
        return ""
    match = re.match(r"Exercise (\d+\.\d+)\b", failure.error.message)
    return match[1] if match else ""


def _advise_on_stub(failed: FailedRun) -> str:
    return (
        f"Your answer uses your answer to Exercise {_called_stub(failed)}, which is not written "
        f"yet. Write that answer first."
    )


def _never_waited(failed: FailedRun) -> bool:
    failure = failed.failure
    return isinstance(failure, Deadlock) and failure.diagnosis.kind == "never_waited"


def _advise_on_wait(failed: FailedRun) -> str:
    return missing_transfer_wait_advice(failed.run)


def _ended_by_clock(failed: FailedRun) -> bool:
    return isinstance(failed.failure, RankTimeout) and failed.failure.by_the_clock


def _advise_on_timeout(failed: FailedRun) -> str:
    return _advise_on_wait(failed) or _advise_on_lines(failed.failure)


def _advise_on_lines(failure: RankFailure) -> str:
    """Return a sentence if a script's ranks were blocked at lines of different collectives."""
    waits = failure.waits if isinstance(failure, RankTimeout) else ()
    if len({wait.state for wait in waits if wait.event is None}) < 2:
        return ""
    return (
        "The ranks are blocked at different lines. A collective must be called by all ranks: does "
        "each rank make the same calls in the same order?"
    )


def _was_killed(failed: FailedRun) -> bool:
    return isinstance(failed.failure, RankDied) and failed.failure.signal == "SIGKILL"


def _advise_on_files(failed: FailedRun) -> str:
    return missing_file_advice(failed.failure) if isinstance(failed.failure, RankFailed) else ""


def _limit_kind(limit: Limit) -> FailureKind:
    return FailureKind(
        f"limit: {limit.name}",
        lambda failed: failed.limit is limit,
        limit.outcome,
        lambda failed: limit.advice,
        is_about_task=False,
    )


FAILURES = (
    FailureKind(
        "own stub",
        _raised_own_stub,
        Outcome.NOT_ATTEMPTED,
        lambda failed: "Replace `raise NotImplementedError(...)` with your own lines.",
        is_about_task=False,
    ),
    FailureKind(
        "stub of a different exercise",
        lambda failed: bool(_called_stub(failed)),
        Outcome.CRASHED,
        _advise_on_stub,
    ),
    FailureKind("missing wait", _never_waited, Outcome.DEADLOCKED, _advise_on_wait),
    FailureKind(
        "deadlock", lambda failed: isinstance(failed.failure, Deadlock), Outcome.DEADLOCKED
    ),
    FailureKind(
        "busy machine",
        _ended_by_clock,
        Outcome.TOO_SLOW,
        _advise_on_timeout,
        last_line=TOO_SLOW_ADVICE,
    ),
    FailureKind(
        "timeout",
        lambda failed: isinstance(failed.failure, RankTimeout),
        Outcome.TIMED_OUT,
        _advise_on_timeout,
    ),
    *map(_limit_kind, LIMITS),
    # a killed rank cannot report whether a limit was the cause
    FailureKind("killed", _was_killed, Outcome.CRASHED, is_about_task=False),
    FailureKind(
        "exception",
        lambda failed: isinstance(failed.failure, RankFailed),
        Outcome.CRASHED,
        _advise_on_files,
    ),
    FailureKind(
        "lost host",
        lambda failed: isinstance(failed.failure, HostLost),
        Outcome.FAULT,
        lambda failed: "This says nothing about your answer. Check it again.",
    ),
    FailureKind("exit", lambda failed: True, Outcome.CRASHED),
)
"""The kinds in the order in which they are tried. The last kind applies to every failure."""
