"""Decide whether something other than the answer may have caused the outcome.

`judge_process` calls this module, because it knows the runs. `grader` uses the result: it runs the answer
again without others, runs the reference solution, or does not cache the record.
"""

from __future__ import annotations

import builtins
from enum import IntEnum

from helpers.check_result import CheckResult, Outcome
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.limits import exceeded_limit
from helpers.ranks.failures import Deadlock, RankDied, RankFailed, RankTimeout
from helpers.ranks.run import Run
from helpers.ranks.server import START_FAILED_EXIT_CODE


class Doubt(IntEnum):
    """The possible causes. Later members need more work before the outcome is certain."""

    NONE = 0
    """Only the answer can be the cause: the outcome is the same on any machine."""
    CHECK = 1
    """The check may not work on this machine, so the reference solution must have passed here."""
    MACHINE = 2
    """The machine may be busy, so the answer runs again alone, and the reference solution must pass now."""
    CLOCK = 3
    """Like MACHINE, but the answer failed only because of the clock, so its record is never cached."""


# Outcomes after which the reference solution is run.
_NEEDS_REFERENCE = {
    Outcome.TIMED_OUT,
    Outcome.CRASHED,
    Outcome.DEADLOCKED,
    Outcome.TOO_MUCH_MEMORY,
    Outcome.TOO_MANY_PROCESSES,
    Outcome.TOO_MANY_FILES,
    Outcome.DISK_FULL,
    Outcome.FAULT,
}
# Outcomes that depend on other programs on the machine. A deadlock does not, because it is proven.
_DEPENDS_ON_MACHINE = _NEEDS_REFERENCE - {Outcome.DEADLOCKED, Outcome.FAULT}
# Errors that only the program can cause. OSError (including timeouts) and MemoryError are missing, and so is
# RuntimeError, which torch also raises if a peer has exited or a wait took too long.
_PROGRAM_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    SyntaxError,
    SystemExit,
    TypeError,
    ValueError,
)
# Errors about files and modules that an answer expects next to its notebook. No check has these files, on any
# machine.
_MISSING_FILE_ERRORS = (
    FileNotFoundError,
    ImportError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
# The course's errors, each of which reports a misuse by the answer.
_MISUSE_ERRORS = frozenset(
    {"BufferInUse", "CannotReturn", "NotAllowed", "StageMisused", "WaitedTwice", "WireError"}
)


def doubt_about(exercise: Exercise, result: CheckResult) -> Doubt:
    """Return the possible causes of a result besides the answer."""
    outcomes = {result.outcome, *(case.outcome for case in result.cases)}
    if Outcome.TOO_SLOW in outcomes:
        return Doubt.CLOCK
    if outcomes & _DEPENDS_ON_MACHINE and not _fails_anywhere(exercise, result):
        return Doubt.MACHINE
    return Doubt.CHECK if outcomes & _NEEDS_REFERENCE or result.unjudged else Doubt.NONE


def _fails_anywhere(exercise: Exercise, result: CheckResult) -> bool:
    """Return whether the failed runs would fail on any machine, busy or not.

    Scripts and measurements depend on clocks, so for them only an endless loop or a missing file is certain.
    """
    if exercise.kind in {Kind.SCRIPT, Kind.MEASUREMENT}:
        failed = [case.run for case in result.cases if not case.passed]
        return bool(failed) and all(
            run is not None and (_has_used_up_cpu(run) or _lacks_file(run)) for run in failed
        )
    runs = [case.run for case in result.cases]
    return bool(runs) and all(run is not None and _fails_by_itself(run) for run in runs)


def _fails_by_itself(run: Run) -> bool:
    match run.failure:
        case None | Deadlock():
            return True
        case RankFailed(error=error):
            own = _is_kind_of(error.kind, _PROGRAM_ERRORS)
            own = own or error.kind in _MISUSE_ERRORS or _lacks_file(run)
            # the sandbox sets limits for each process
            return own or exceeded_limit(run.failure) is not None
        case RankDied(signal="", exitcode=code):  # the rank has called os._exit
            return code != START_FAILED_EXIT_CODE
    return _has_used_up_cpu(run)


def _lacks_file(run: Run) -> bool:
    """Return whether a rank did not find a file or a module, or was not permitted to use it."""
    failure = run.failure
    return isinstance(failure, RankFailed) and _is_kind_of(failure.error.kind, _MISSING_FILE_ERRORS)


def _is_kind_of(name: str, kinds: tuple[type[BaseException], ...]) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, kinds)


def _has_used_up_cpu(run: Run) -> bool:
    """Return whether the ranks used up their processor time, as they would in an endless loop."""
    match run.failure:
        case RankTimeout(was_computing=True, by_the_clock=False) | RankDied(signal="SIGXCPU"):
            return True
    return False
