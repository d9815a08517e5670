"""Judge an answer in a child of the grader, which is the only process that decodes ranks' data.

    grader --fork--> judge: draw cases, run them, decode, judge, draw a picture
       ^                | the connection     `--a line: Attempt, size-capped--.
       |                v                                                     |
       |             sandbox: rank server | ranks                             |
       `----------------------------------------------------------------------'

Ranks may send data that is cheap to send but expensive to read, or data that makes a library fail. So a judge
has little memory and processor time for each set of cases, and little wall time. If it dies, only the outcome
of its own answer is affected. Only the judge communicates with the rank server of its sandbox. Tasks that
must not fail are left to the grader: watching the sandbox, and terminating sandbox and judge.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from helpers.answers.build import Answer
from helpers.check_result import CheckResult, Outcome
from helpers.checks.check_answer import grade
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.limits import RESOURCE_OUTCOMES
from helpers.checks.match_mistakes import Matches
from helpers.checks.pass_all import pass_all
from helpers.grading.cells import cell_mark
from helpers.grading.machine_faults import Doubt, doubt_about
from helpers.grading.record import ExerciseRecord
from helpers.grading.results import failed_record, record_of_results
from helpers.ranks.connection import Connection
from helpers.ranks.processes import end_with_parent, kill_process

# Memory limit of a judge in bytes, in addition to the grader's memory when the judge is forked.
_MEMORY_BYTES = 1 << 30
# Processor time in seconds for one set of cases: ten times the time of the most expensive set.
_CPU_S = 30
_MAX_BYTES = 16 << 20
# Maximum length of a displayed error in the judge.
_MAX_ERROR_CHARS = 200
# Outcomes of visible cases after which hidden cases would only fail in the same way and take just as long.
_SKIP_HIDDEN_AFTER = {
    Outcome.TIMED_OUT,
    Outcome.CRASHED,
    Outcome.DEADLOCKED,
    *(RESOURCE_OUTCOMES - {Outcome.FLOODED}),
}


@dataclass(frozen=True)
class Attempt:
    """The result of an answer in one sandbox: its visible cases, then its hidden cases."""

    record: ExerciseRecord
    doubt: Doubt = Doubt.NONE


def run_attempt(
    exercise: Exercise,
    answer: Answer,
    secret: str,
    connection: Connection,
    timeout_s: float,
    pictures: str = "none",
    in_shared_worlds: bool = False,
) -> Attempt:
    """Run an answer's visible cases, then the cases drawn with a secret. No answer can cause an exception.

    Args:
        timeout_s: Wall time in seconds.
        pictures: The visible runs to draw, as in `record_of_results`.
        in_shared_worlds: Whether to run all cases in the same worlds. In this case only a passing record is
            meaningful, and only such a record may be shown, because the ranks had hidden inputs.
    """

    def judge_in_shared_worlds() -> Attempt:
        limit_resources()
        if (both := pass_all(exercise, answer, [VISIBLE_SECRET, secret], connection)) is None:
            return Attempt(failed_record(exercise, answer, Outcome.WRONG, ""))
        return Attempt(record_of_results(exercise, answer, both[0], both[1]))

    def judge_separately() -> Attempt:
        visible, hidden = _check_result(exercise, answer, VISIBLE_SECRET, connection), None
        if visible.outcome not in _SKIP_HIDDEN_AFTER or any(case.credit for case in visible.cases):
            hidden = _check_result(exercise, answer, secret, connection)
        doubt = max(doubt_about(exercise, each) for each in (visible, hidden) if each is not None)
        return Attempt(record_of_results(exercise, answer, visible, hidden, pictures), doubt)

    judge = judge_in_shared_worlds if in_shared_worlds else judge_separately
    return _judge_in_child(exercise, answer, judge, connection, timeout_s)


def _judge_in_child(
    exercise: Exercise,
    answer: Answer,
    judge: Callable[[], Attempt],
    connection: Connection,
    timeout_s: float,
) -> Attempt:
    """Judge in a child process. Return an attempt even if the child fails."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            set_up_child()
            connection.use_from_fork()
            # use ASCII, because strings may contain half a surrogate pair
            text = json.dumps(msgspec.to_builtins(judge()))
            with open(theirs, "wb") as pipe:
                pipe.write(text.encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(theirs)
    said = _read_all(ours, time.monotonic() + timeout_s)
    os.close(ours)
    kill_process(pid)
    number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(ValueError, RecursionError):
        return msgspec.convert(json.loads(said), Attempt)
    if number == -signal.SIGXCPU:
        message = f"It returned more than can be read in {_CPU_S} s of processor time."
        return Attempt(failed_record(exercise, answer, Outcome.FLOODED, message))
    why = "it takes too long, or too much memory" if number < 0 else f"it ended with {number}"
    return Attempt(
        failed_record(exercise, answer, Outcome.CRASHED, _unjudged_message(why)), Doubt.MACHINE
    )


def _read_all(fd: int, deadline: float) -> bytes:
    """Read a child's output until the child closes its end, misses the deadline, or sends too much."""
    said = bytearray()
    # the grader would have to store too much in memory
    while len(said) <= _MAX_BYTES:
        if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            break
        if not (chunk := os.read(fd, 1 << 16)):
            break
        said += chunk
    return bytes(said)


# --- within the child -----------------------------------------------------------------------------


def set_up_child() -> None:
    """Set up a forked process that reads ranks' data and ends with its parent."""
    # A killed grader could not end its judge and the rank server.
    end_with_parent()
    gc.freeze()  # keep the collector from touching the grader's objects, so that their memory stays shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A core dump would contain hidden cases and be as large as the grader.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_resources() -> None:
    """Limit the time and memory for reading the next set of cases, whose data may be hostile.

    Only the soft limits are set, which this process raises again for the next set. The data cannot raise
    them, because it is decoded, never evaluated.
    """
    cpu_s = int(time.process_time()) + 1 + _CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    with suppress(OSError, ValueError):
        # The limit applies to further growth, so add it to the current data and stack, in pages (proc(5)).
        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[5])
        most = pages * resource.getpagesize() + _MEMORY_BYTES
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _check_result(
    exercise: Exercise, answer: Answer, secret: str, connection: Connection
) -> CheckResult:
    """Return the result on the cases drawn with a secret."""
    limit_resources()
    # learners read only advice on visible cases
    matches: Matches | None = {} if secret == VISIBLE_SECRET else None
    try:
        return grade(exercise, answer, cell_mark, secret, connection=connection, matches=matches)
    except MemoryError:
        why = "it takes too much memory"
    except Exception as error:  # caused by the data or by this machine: the grader finds out which
        why = f"{type(error).__name__}: {str(error)[:_MAX_ERROR_CHARS]}"
    return CheckResult(
        exercise.name, exercise.heading, Outcome.CRASHED, message=_unjudged_message(why)
    )


def _unjudged_message(why: str) -> str:
    return f"Its return value could not be judged: {why}."
