"""Judge an answer in a child of the grader: what its ranks send is decoded and judged there, nowhere else.

    grader --fork--> judge: draw cases, run them, decode, judge, draw a picture
       ^                | the connection     `--a line: Attempt, size-capped--.
       |                v                                                     |
       |             sandbox: rank server | ranks                             |
       `----------------------------------------------------------------------'

What ranks send may be made so that it is cheap to send and expensive to read, or so that a library fails over
it. A judge has little memory and processor time for each set of cases, and little wall time. If it dies, that
is the outcome of its answer, and of no other. It alone talks to the rank server of its sandbox. What has to
work whatever it reads stays with the grader: watching the sandbox, and ending both. Used by `grader`.
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
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.explain import Matches
from helpers.checks.grade import grade
from helpers.checks.pass_all import pass_all
from helpers.checks.result import CheckResult, Outcome
from helpers.grading.cells import mark
from helpers.grading.doubt import Doubt, doubt_about
from helpers.grading.record import ExerciseRecord
from helpers.grading.results import failed, record_of_results
from helpers.ranks.connection import Connection
from helpers.ranks.processes import end, end_with_parent

# Bytes that judging may take, besides what the grader holds when it forks the judge.
_MEMORY = 1 << 30
# Processor time for one set of cases: ten times what the most expensive takes.
_CPU_S = 30
_MOST_BYTES = 16 << 20
# Characters of an error of the judge's own.
_SHOWN = 200
# Outcomes of visible cases after which hidden ones would only fail in the same way, and take as long.
_HOPELESS = {Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.DEADLOCKED}


@dataclass(frozen=True)
class Attempt:
    """What came of an answer in one sandbox: of its visible cases, then of its hidden ones."""

    record: ExerciseRecord
    doubt: Doubt = Doubt.NONE


def attempt(
    exercise: Exercise,
    answer: Answer,
    secret: str,
    connection: Connection,
    within_s: float,
    pictures: str = "none",
    at_once: bool = False,
) -> Attempt:
    """Try an answer's visible cases, then those of a secret. Never raises on its account.

    within_s: wall time. pictures: as `record_of_results` has it. at_once: try all cases in the same worlds.
    Then only a record that passed says anything, and only it may be shown: the ranks held hidden inputs.
    """

    def together() -> Attempt:
        confine()
        if (both := pass_all(exercise, answer, [VISIBLE_SECRET, secret], connection)) is None:
            return Attempt(failed(exercise, answer, Outcome.WRONG, ""))
        return Attempt(record_of_results(exercise, answer, both[0], both[1]))

    def apart() -> Attempt:
        visible, hidden = _result(exercise, answer, VISIBLE_SECRET, connection), None
        if visible.outcome not in _HOPELESS or any(case.credit for case in visible.cases):
            hidden = _result(exercise, answer, secret, connection)
        doubt = max(doubt_about(exercise, each) for each in (visible, hidden) if each is not None)
        return Attempt(record_of_results(exercise, answer, visible, hidden, pictures), doubt)

    judge = together if at_once else apart
    return _judged(exercise, answer, judge, connection, within_s)


def _judged(
    exercise: Exercise,
    answer: Answer,
    judge: Callable[[], Attempt],
    connection: Connection,
    within_s: float,
) -> Attempt:
    """Let a child judge; whatever becomes of it, return an attempt."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            begin_child()
            connection.take_over()
            text = json.dumps(
                msgspec.to_builtins(judge())
            )  # ASCII: texts may hold half a surrogate pair
            with open(theirs, "wb") as pipe:
                pipe.write(text.encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(theirs)
    said = _read(ours, time.monotonic() + within_s)
    os.close(ours)
    end(pid)
    number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(ValueError, RecursionError):
        return msgspec.convert(json.loads(said), Attempt)
    if number == -signal.SIGXCPU:
        message = f"It gave back more than can be read in {_CPU_S} s of processor time."
        return Attempt(failed(exercise, answer, Outcome.FLOODED, message))
    why = "it takes too long, or too much memory" if number < 0 else f"it ended with {number}"
    return Attempt(failed(exercise, answer, Outcome.CRASHED, _could_not(why)), Doubt.MACHINE)


def _read(fd: int, deadline: float) -> bytes:
    """Read what a child writes until it closes its end; less than that if it is too much or too late."""
    said = bytearray()
    # more than that the grader would have to hold in memory
    while len(said) <= _MOST_BYTES:
        if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
            break
        if not (chunk := os.read(fd, 1 << 16)):
            break
        said += chunk
    return bytes(said)


# --- within the child -----------------------------------------------------------------------------


def begin_child() -> None:
    """Set up a process that was forked to read what ranks send: it ends with its parent."""
    # A grader that is killed has no time to end its judge, and with it the rank server.
    end_with_parent()
    gc.freeze()  # what the grader holds is not touched, and so not copied
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A core would hold hidden cases, and be as large as the grader.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def confine() -> None:
    """Bound what reading the next set of cases may take. It runs the course's own code; its data is hostile.

    The soft limits alone, which one process may raise again for the next set. Nobody but this code can:
    the data is decoded, never evaluated.
    """
    cpu_s = int(time.process_time()) + 1 + _CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    with suppress(OSError, ValueError):
        # The limit is for growth from here: data and stack that the process has now, in pages (proc(5)).
        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[5])
        most = pages * resource.getpagesize() + _MEMORY
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _result(exercise: Exercise, answer: Answer, secret: str, connection: Connection) -> CheckResult:
    """Return what came of the cases of a secret."""
    confine()
    # learners read advice on visible cases only
    matches: Matches | None = {} if secret == VISIBLE_SECRET else None
    try:
        return grade(exercise, answer, mark, secret, connection=connection, matches=matches)
    except MemoryError:
        why = "it takes too much memory"
    except (
        Exception
    ) as error:  # on account of what it sent, or of this machine: the grader finds out
        why = f"{type(error).__name__}: {str(error)[:_SHOWN]}"
    return CheckResult(exercise.name, exercise.heading, Outcome.CRASHED, message=_could_not(why))


def _could_not(why: str) -> str:
    return f"What it gave back could not be judged: {why}."
