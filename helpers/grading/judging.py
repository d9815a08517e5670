"""Try an answer in a child of the grader's: what its ranks sent is decoded and judged there, nowhere else.

    grader --fork--> child: draw cases, run them in the sandbox, decode, judge, draw a picture
       ^                |
       `---- JSON ------'    texts and numbers, size-capped: `Judged`

What ranks send may be made so that it is cheap to send and expensive to read, or so that a library fails over
it. The child has little memory, processor time and wall time of its own. One that dies is the outcome of
the answer that killed it, and of no other. Called by `grader`, for each set of cases.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import selectors
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from helpers.answers.build import Answer, cell_number
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.explain import Matches
from helpers.checks.grade import grade
from helpers.checks.kinds import Kind
from helpers.checks.result import CaseVerdict, CheckResult, Outcome
from helpers.grading.explained import mismatch
from helpers.grading.pictures import picture_of
from helpers.grading.record import CaseRecord, case_from_json
from helpers.ranks.connection import Connection
from helpers.ranks.processes import end, end_with_parent

_MEMORY = 1 << 30
"""Bytes that judging may take, besides what the grader holds when it forks the child."""
_CPU_S = 30
"""Processor time of a judge: ten times what the most expensive takes."""
_MOST_BYTES = 16 << 20
_MOST_TEXT = 4_000
_MOST_MATCHES, _DIGEST = 10_000, 64
_SHOWN = 200
"""Characters of an error of the judge's own."""


@dataclass(frozen=True)
class Judged:
    """What came of one set of cases, in texts and numbers alone.

    cases: of hidden ones only outcome and credit; none, where they could not be run or judged. flag: what
    the bytes on the wire do not bear out, or "". picture: a PNG in base64, or "". unjudged: as `CheckResult`
    has it; "hidden" of hidden cases.
    """

    outcome: Outcome
    points: float
    message: str = ""
    cases: tuple[CaseRecord, ...] = ()
    notes: tuple[str, ...] = ()
    flag: str = ""
    picture: str = ""
    unjudged: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON's own types."""
        return {**asdict(self), "outcome": self.outcome.value}

    @property
    def outcomes(self) -> set[Outcome]:
        return {self.outcome, *(Outcome(case.outcome) for case in self.cases)}


def judged(result: CheckResult, exercise: Exercise, hidden: bool, pictures: str) -> Judged:
    """Keep of a result what goes into a record. pictures: as `picture_of` wants it."""
    if hidden:
        cases = tuple(_hidden(number, case) for number, case in enumerate(result.cases, 1))
    else:
        cases = tuple(_visible(case) for case in result.cases)
    return Judged(
        result.outcome,
        result.points,
        result.message[:_MOST_TEXT],
        cases,
        tuple(note[:_MOST_TEXT] for note in result.notes),
        _unexplained(exercise, result),
        "" if hidden else picture_of(result, pictures),
        result.unjudged and ("hidden" if hidden else result.unjudged[:_MOST_TEXT]),
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
    return CaseRecord(f"hidden case {number}", True, case.outcome.value, case.credit)


def _unexplained(exercise: Exercise, result: CheckResult) -> str:
    """Return the first mismatch between calls and bytes in a case that has brought points."""
    if exercise.own_network or exercise.kind not in {Kind.RANKS, Kind.MODULE}:
        return ""
    runs = (case.world or case.run for case in result.cases if case.credit)
    worlds = {id(run): run for run in runs if run is not None}
    return next(filter(None, map(mismatch, worlds.values())), "")


def judge_apart(
    exercise: Exercise,
    answer: Answer,
    secret: str,
    connection: Connection,
    pictures: str,
    within_s: float,
    matches: Matches,
) -> Judged:
    """Try an answer on the cases of a secret, in a child of this process. Never raises on its account.

    matches: known mistakes by what answers did; the child's are added. within_s: wall time. Where the child
    does not end as it should, the connection is of no more use, and is marked as gone.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            text = _try(exercise, answer, secret, connection, pictures, matches)
            with open(write, "wb") as pipe:
                pipe.write(text)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    text, status = b"", 0
    try:
        text = _read(read, time.monotonic() + within_s)
    finally:
        os.close(read)
        status = _ended(pid)
    try:
        told = json.loads(text)
        connection.go_on(told.pop("server"))
        _add(matches, told.pop("matches"))
        return judged_from_json(told)
    except (ValueError, KeyError, TypeError, AttributeError):
        connection.gone = True  # the child may have read half of what its server said
        number = os.waitstatus_to_exitcode(status)
        if number == -signal.SIGXCPU:
            message = f"It gave back more than can be read in {_CPU_S} s of processor time."
            return Judged(Outcome.FLOODED, 0.0, message)
        why = "it takes too long, or too much memory" if number < 0 else f"it ended with {number}"
        return _could_not(why)


def _add(matches: Matches, found: dict[str, str]) -> None:
    """Take what a child has found. Whatever it says can at most name a known mistake of the exercise."""
    for key, title in found.items():
        if len(matches) < _MOST_MATCHES and len(key) == _DIGEST and isinstance(title, str):
            matches.setdefault(key, title[:_SHOWN])


def _try(
    exercise: Exercise,
    answer: Answer,
    secret: str,
    connection: Connection,
    pictures: str,
    matches: Matches,
) -> bytes:
    """Within the child: give what came of it as JSON."""
    _confine()
    connection.take_over()
    hidden = secret != VISIBLE_SECRET
    known = set(matches)
    try:
        result = grade(
            exercise,
            answer,
            cell_number,
            secret,
            connection=connection,
            matches=None if hidden else matches,
        )
        found = judged(result, exercise, hidden, pictures)
    except MemoryError:
        found = _could_not("it takes too much memory")
    except Exception as error:  # on account of what it sent, or of this machine: the grader asks
        found = _could_not(f"{type(error).__name__}: {str(error)[:_SHOWN]}")
    told = {**asdict(found), "outcome": found.outcome.value, "server": connection.state()}
    told["matches"] = {key: title for key, title in matches.items() if key not in known}
    return json.dumps(told).encode()


def _could_not(why: str) -> Judged:
    return Judged(Outcome.CRASHED, 0.0, f"What it gave back could not be judged: {why}.")


def _confine() -> None:
    """Give up what a judge has no need of. It runs the course's own code; its data is hostile."""
    end_with_parent()
    gc.freeze()  # what the grader holds is not touched, and so not copied
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S + 1))
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        most = pages * resource.getpagesize() + _MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _read(pipe: int, deadline: float) -> bytes:
    """Read what the child writes until it closes its end; nothing, if that is too much or too late."""
    received = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and len(received) <= _MOST_BYTES:
            if selector.select(left):
                chunk = os.read(pipe, 1 << 16)
                if not chunk:
                    return bytes(received)
                received += chunk
    return b""


def _ended(pid: int) -> int:
    """See to it that a child has ended; give how."""
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.002)
    end(pid)
    return os.waitpid(pid, 0)[1]


def judged_from_json(told: dict[str, Any]) -> Judged:
    """Make it of JSON's own types. Raise KeyError, TypeError or ValueError where it is none."""
    cases = tuple(case_from_json(case) for case in told["cases"])
    rest = {"outcome": Outcome(told["outcome"]), "cases": cases, "notes": tuple(told["notes"])}
    return Judged(**{**told, **rest})
