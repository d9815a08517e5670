"""Judge answers in a child of the grader: what ranks send is decoded and judged there, nowhere else.

    grader --a line: exercise, answer, secret--> judge: draw cases, run them, decode, judge, draw a picture
       | <--a line: ExerciseRecord, matches--------'|       texts and numbers, size-capped
       |                                            | the connection
       `------- starts, guards, ends -----------> sandbox: rank server | ranks

What ranks send may be made so that it is cheap to send and expensive to read, or so that a library fails over
it. A judge has little memory and processor time for each set of cases, and little wall time. One that dies is
the outcome of the answer that killed it, and of no other. It alone talks to the rank server of its sandbox,
and lives as long. What has to work whatever it reads stays with the grader: to watch the sandbox, and to end
it. Used by `grader`.
"""

from __future__ import annotations

import base64
import builtins
import gc
import json
import os
import resource
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from helpers.answers.build import Answer
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.explain import Matches
from helpers.checks.grade import grade
from helpers.checks.kinds import Kind
from helpers.checks.pass_all import pass_all
from helpers.checks.registry import get
from helpers.checks.result import CaseVerdict, CheckResult, Outcome
from helpers.grading.cells import mark
from helpers.grading.record import CaseRecord, ExerciseRecord, record_of
from helpers.grading.sandbox.levels import Plan, Sandbox
from helpers.ranks.connection import Connection
from helpers.ranks.failures import Deadlock, RankDied, RankFailed, RankTimeout
from helpers.ranks.processes import end, end_with_parent
from helpers.ranks.run import Run
from helpers.ranks.server import NOT_A_RANK
from helpers.trace.events import Trace

# The outcome where only the reference solution can tell whether the answer or the check is wrong.
NOT_JUDGED = "not judged"
# Bytes that judging may take, besides what the grader holds when it forks the judge.
_MEMORY = 1 << 30
# Processor time for one set of cases: ten times what the most expensive takes.
_CPU_S = 30
_MOST_BYTES = 16 << 20
_MOST_TEXT = 4_000
_MOST_MATCHES, _DIGEST = 10_000, 64
# Characters of an error of the judge's own.
_SHOWN = 200
# Of replaced functions in one flag.
_MOST_NAMES = 8
REPLACED = "has replaced {names} in a rank, on which its own reports may depend: look at what for"
# Of a run that is drawn.
_MOST_EVENTS, _MOST_TRACE = 400, 300_000
# Errors that a program makes by itself. Not here: OSError with its timeouts, MemoryError, and RuntimeError,
# by which torch also says that a peer has gone or that it has waited for too long.
_OWN = (
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


# Errors of the course's own, each of which says what an answer must not do.
_MISUSES = frozenset(
    {"BufferInUse", "CannotReturn", "NotAllowed", "StageMisused", "WaitedTwice", "WireError"}
)


@dataclass(frozen=True)
class _Asked:
    """What the grader sends.

    secrets: of one set of cases; of several, to hear whether all of them pass. settled: as `grade` has it.
    """

    exercise: str
    answer: Answer
    secrets: list[str]
    settled: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Judged:
    """What came of one set of cases. is_own: what failed, if anything, would fail so on any machine."""

    record: ExerciseRecord
    is_own: bool = False


@dataclass(frozen=True)
class _Said:
    """What a judge sends: what came of each set of cases, of several nothing unless all of them pass.

    matches: known mistakes that it has found, by what the answer did.
    """

    judged: list[Judged]
    matches: dict[str, str] = field(default_factory=dict)


class Judge:
    """A sandbox, and the child of this process that judges what runs in it. Use as a context manager.

    pictures: as `written_down` wants it. matches: known mistakes by what answers did; what the judge finds
    is added.
    """

    def __init__(
        self, plan: Plan, slot: int, preload: bool, pictures: str, matches: Matches
    ) -> None:
        self.seen: set[str] = set()
        """The secrets of the cases that have run in the sandbox."""
        self._matches = matches
        # The sandbox first: a child that is forked now has its connection, which cannot be passed on later.
        self.sandbox = Sandbox(plan, slot, preload)
        try:
            # A socket pair has no name, so no other process can connect to it.
            self._line, theirs = socket.socketpair()
            self._pid = os.fork()
        except BaseException:
            self.sandbox.close()
            raise
        if self._pid == 0:
            try:
                self._line.close()  # the grader's end: with a copy here the child would never see it close
                _serve(theirs, self.sandbox.connection, pictures, matches)
                os._exit(0)
            finally:
                os._exit(1)
        theirs.close()

    @property
    def gone(self) -> bool:
        """Whether it can judge nothing more."""
        return not self._pid or self.sandbox.gone

    def judge(
        self,
        exercise: Exercise,
        answer: Answer,
        secret: str,
        within_s: float,
        settled: Sequence[int] = (),
    ) -> Judged:
        """Try an answer on the cases of a secret. Never raises on its account. within_s: wall time."""
        try:
            asked = _Asked(exercise.name, answer, [secret], list(settled))
            (judged,) = self._ask(asked, within_s)
            return judged
        except (OSError, ValueError, RecursionError):
            number = os.waitstatus_to_exitcode(self._end())
        if number == -signal.SIGXCPU:
            message = f"It gave back more than can be read in {_CPU_S} s of processor time."
            return Judged(record_of(exercise, Outcome.FLOODED.value, message=message))
        why = "it takes too long, or too much memory" if number < 0 else f"it ended with {number}"
        return Judged(_could_not(exercise, why))

    def pass_all(
        self, exercise: Exercise, answer: Answer, secrets: list[str], within_s: float
    ) -> list[Judged]:
        """Return what came of each secret's cases if all of them pass at once; else nothing."""
        try:
            return self._ask(_Asked(exercise.name, answer, secrets), within_s)
        except (OSError, ValueError, RecursionError):
            self._end()
            return []

    def _ask(self, asked: _Asked, within_s: float) -> list[Judged]:
        self.seen.update(asked.secrets)
        self._line.settimeout(max(0.01, within_s))
        self._line.sendall(_written(asked))
        said = msgspec.convert(json.loads(self._read(time.monotonic() + within_s)), _Said)
        for key, title in said.matches.items():
            # Whatever it says can at most name a known mistake of the exercise.
            if len(self._matches) < _MOST_MATCHES and len(key) == _DIGEST:
                self._matches.setdefault(key, title[:_SHOWN])
        return said.judged

    def close(self) -> None:
        """End it, then the sandbox."""
        # First the child: the rank server ends when nobody holds the other end of its socket any more.
        if self._pid:
            self._end()
        self._line.close()
        self.sandbox.close()

    def _read(self, deadline: float) -> bytes:
        """Read a line; an error if that is too much or too late."""
        received = bytearray()
        while not received.endswith(b"\n"):
            self._line.settimeout(max(0.01, deadline - time.monotonic()))
            chunk = self._line.recv(1 << 16)
            # No bytes: the judge has died. Too many: the grader would have to hold them in memory.
            if not chunk or len(received) > _MOST_BYTES:
                raise ValueError("no line")
            received += chunk
        return bytes(received)

    def _end(self) -> int:
        """See to it that the child has ended; give how."""
        pid, self._pid = self._pid, 0
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.002)
        end(pid)
        return os.waitpid(pid, 0)[1]


def _written(value: Any) -> bytes:
    """Return a value as one line of JSON: ASCII, as what strangers wrote may hold half a surrogate pair."""
    return json.dumps(msgspec.to_builtins(value)).encode() + b"\n"


# --- within the child -----------------------------------------------------------------------------


def begin_child() -> None:
    """Set up a process that was forked to read what ranks send: it ends with its parent."""
    # A grader that is killed has no time to end its judge, and with it the rank server.
    end_with_parent()
    gc.freeze()  # what the grader holds is not touched, and so not copied
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A core would hold hidden cases, and be as large as the grader.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(grader: socket.socket, connection: Connection, pictures: str, matches: Matches) -> None:
    """Judge what the grader asks for until it closes its end."""
    begin_child()
    connection.take_over()
    with grader.makefile("rwb") as lines:
        for line in lines:
            asked = msgspec.convert(json.loads(line), _Asked)
            known = set(matches)
            confine()  # again for each set, as processor time adds up
            judged = _tried(asked, connection, pictures, matches)
            new = {key: title for key, title in matches.items() if key not in known}
            lines.write(_written(_Said(judged, new)))
            lines.flush()


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


def _tried(asked: _Asked, connection: Connection, pictures: str, matches: Matches) -> list[Judged]:
    exercise = get(asked.exercise)
    first, *more = asked.secrets
    try:
        if more:
            results = pass_all(exercise, asked.answer, asked.secrets, connection) or []
        else:
            advice = matches if first == VISIBLE_SECRET else None
            results = [
                grade(
                    exercise,
                    asked.answer,
                    mark,
                    first,
                    connection=connection,
                    matches=advice,
                    settled=asked.settled,
                )
            ]
        # without results there is nothing to go with the secrets
        return [
            Judged(
                written_down(result, exercise, secret != VISIBLE_SECRET, pictures),
                _is_own(exercise, result),
            )
            for secret, result in zip(asked.secrets, results, strict=False)
        ]
    except MemoryError:
        why = "it takes too much memory"
    except Exception as error:  # on account of what it sent, or of this machine: the grader asks
        why = f"{type(error).__name__}: {str(error)[:_SHOWN]}"
    return [] if more else [Judged(_could_not(exercise, why))]


def _is_own(exercise: Exercise, result: CheckResult) -> bool:
    """Whether the runs that did not end well would end so on any machine, however busy it is.

    Scripts and measurements have clocks of their own, so only an endless loop is certain there.
    """
    if exercise.kind in {Kind.SCRIPT, Kind.MEASUREMENT}:
        failed = [case.run for case in result.cases if not case.passed]
        return bool(failed) and all(run is not None and _used_up(run) for run in failed)
    runs = [case.run for case in result.cases]
    return bool(runs) and all(run is not None and _fails_of_itself(run) for run in runs)


def _fails_of_itself(run: Run) -> bool:
    match run.failure:
        case None | Deadlock():  # which is proven
            return True
        case RankFailed(error=error):
            kind = getattr(builtins, error.kind, None)
            own = isinstance(kind, type) and issubclass(kind, _OWN)
            return own or error.kind in _MISUSES
        case RankDied(signal="", exitcode=code):  # it has called os._exit
            return code != NOT_A_RANK
    return _used_up(run)


def _used_up(run: Run) -> bool:
    """Whether the ranks used up their processor time, as an endless loop does on any machine."""
    match run.failure:
        case RankTimeout(was_computing=True, by_the_clock=False) | RankDied(signal="SIGXCPU"):
            return True
    return False


def _could_not(exercise: Exercise, why: str) -> ExerciseRecord:
    message = f"What it gave back could not be judged: {why}."
    return record_of(exercise, Outcome.CRASHED.value, message=message)


def written_down(
    result: CheckResult, exercise: Exercise, hidden: bool, pictures: str
) -> ExerciseRecord:
    """Keep of a check's result texts and numbers; of hidden cases only outcome and credit.

    pictures: "all", "failed" (only where the check did not pass) or "none".
    """
    drawn = pictures == "all" or (pictures == "failed" and not result.passed)
    picture, trace = _drawn(result.run) if drawn and not hidden else ("", "")
    if hidden:
        cases = tuple(_hidden(number, case) for number, case in enumerate(result.cases, 1))
    else:
        cases = tuple(_visible(case) for case in result.cases)
    return record_of(
        exercise,
        NOT_JUDGED if result.unjudged else result.outcome.value,
        result.points,
        cases=cases,
        message=(result.unjudged or result.message)[:_MOST_TEXT],
        notes=tuple(note[:_MOST_TEXT] for note in result.notes),
        flags=_flags(result),
        picture=picture,
        trace=trace,
    )


def _visible(case: CaseVerdict) -> CaseRecord:
    most = _MOST_TEXT
    return CaseRecord(
        case.label,
        False,
        case.outcome.value,
        case.credit,
        tuple((r.rank, r.given, r.expected, r.got[:most], r.problem[:most]) for r in case.rows),
        tuple(text[:most] for text in case.broken),
        case.message[:most],
        case.advice[:most],
    )


def _hidden(number: int, case: CaseVerdict) -> CaseRecord:
    """Leave out the label too: some name what the case hands out."""
    return CaseRecord(hidden_label(number), True, case.outcome.value, case.credit)


def hidden_label(number: int) -> str:
    return f"hidden case {number}"


def _flags(result: CheckResult) -> tuple[str, ...]:
    """Return what a person should look at in the worlds of the cases that have brought points."""
    runs = (case.world or case.run for case in result.cases if case.credit)
    names = sorted({name[:_SHOWN] for run in runs if run is not None for name in run.replaced})
    return (REPLACED.format(names=", ".join(names[:_MOST_NAMES])),) if names else ()


@cache
def preload(pictures: bool) -> None:
    """Do once in the grader what each judge would have to: import what sends cases, and what draws."""
    for name in ("helpers.ranks.sending", "helpers.ranks.unsendable"):
        import_module(name)
    if pictures:
        from helpers.views.timeline import timeline

        timeline(Run(1, [None], [""], Trace(1)))._repr_png_()


def _drawn(run: Run | None) -> tuple[str, str]:
    """Draw a run from its trace alone, as a PNG in base64, and write the trace as JSON.

    Two empty texts where there is nothing to see, and no trace where it would be too long.
    """
    if run is None or not 0 < len(run.trace) <= _MOST_EVENTS:
        return "", ""
    from helpers.views.timeline import timeline

    try:
        picture = base64.b64encode(timeline(run)._repr_png_()).decode()
        trace = msgspec.json.encode(run.trace).decode()
    except Exception:  # a trace that cannot be drawn must not cost anybody a grade
        return "", ""
    return picture, trace if len(trace) <= _MOST_TRACE else ""
