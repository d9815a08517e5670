"""Inside a rank: compose a script from an answer, run it under a launcher, and report the result.

    Source + worker driver + inputs --compose--> folder/main.py
    folder --under_torchrun or run_with_forked_workers--> reports in the folder --> a report for each rank

The drivers of script exercises call this in a rank, and all processes started by them end with this rank.
In the launching process, `script_runs` creates a Run from the report.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import re
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from helpers.checks import script_worker
from helpers.checks.load_answer import build
from helpers.jobs.owned import read_head
from helpers.jobs.ports import free_port
from helpers.jobs.run import TorchrunRun
from helpers.jobs.torchrun import JobOptions, start_job
from helpers.ranks import wire
from helpers.ranks.budget import Budget
from helpers.ranks.failures import TIMED_OUT_AFTER
from helpers.ranks.processes import living_children

ROOT = str(Path(__file__).parents[2])
_MAIN_SOURCE = """import os
import sys
from pathlib import Path

from helpers.checks.script_worker import main

main(Path(__file__).parent)
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)  # no teardown of the interpreter: gloo's threads must not outlive Python's state
"""
_MAX_TEXT = 20_000
_FRAME_LINE_PATTERN = re.compile(r'  File "([^"]*)", line (\d+) in (\S+)')
_POLL_INTERVAL_S, _SHORT_INTERVAL_S = 0.01, 0.001
# Time limit for a worker to write down its current frames.
_DUMP_TIMEOUT_S = 0.1
# Largest size of a question in bytes. A worker that sends more without a newline is ignored from then on.
_MAX_REQUEST_BYTES = 1 << 20


class Intervention(Enum):
    """A monitor's reaction instead of an answer: kill the asking worker, or end the whole job."""

    KILL = "kill"
    STOP = "stop"


class Monitor:
    """Answers the workers of a forked job, in the process that forked them but never runs an answer's code.

    The questions show the monitor the progress of each worker, and only the monitor decides which worker is
    killed, and when. This base class gives no answers.
    """

    def begin(self, attempt: int, size: int) -> None:
        """Record that an attempt with `size` workers is about to start."""

    def answer(self, rank: int, question: list[Any]) -> Any:
        """Return plain data, or an `Intervention`, for a worker. The question may be hostile."""
        return None

    def end(self) -> None:
        """Record that all workers of the attempt have ended."""

    def close_in_worker(self) -> None:
        """Close, in a forked worker, the files that the worker must not inherit from this process."""


@dataclass(frozen=True)
class Source:
    """An answer that has not been executed yet, as passed to a script exercise's driver."""

    text: str
    name: str

    def build(self) -> Any:
        """Execute the source in this rank and return the answer."""
        return build(self.text, self.name)


def compose(answer: Source, driver: Callable[..., Any], inputs: Sequence[Any]) -> Path:
    """Write a script into a new folder in the temp folder; return its path.

    driver: the module-level function that the script's processes call with the answer and the inputs. It is
    sent by name, because the script runs in different processes.
    """
    folder, name = (
        Path(tempfile.mkdtemp(prefix="script-")),
        f"{driver.__module__}:{driver.__name__}",
    )
    # write the inputs to files, so that torchrun's workers read them in the same way as forked workers
    (folder / "answer.py").write_text(answer.text, encoding="utf-8")
    (folder / "job.json").write_text(
        json.dumps({"answer": answer.name, "driver": name}), encoding="utf-8"
    )
    (folder / "inputs").write_bytes(b"".join(wire.encode(list(inputs))))
    (folder / "main.py").write_text(_MAIN_SOURCE, encoding="utf-8")
    return folder / "main.py"


def under_torchrun(
    script: Path, nproc: int, env: Mapping[str, str] | None = None, timeout_s: float = 12.0
) -> dict[str, Any]:
    """Run a composed script under a real torchrun agent and return its report."""
    return report_of(run_under_torchrun(script, nproc, env, timeout_s), script, nproc)


def run_under_torchrun(
    script: Path, nproc: int, env: Mapping[str, str] | None = None, timeout_s: float = 12.0
) -> TorchrunRun:
    """Run a composed script under a real torchrun agent and return its full report."""
    # the workers are new interpreters, so they need this package's path
    worker_env = {"PYTHONPATH": ROOT, **(env or {})}
    with start_job(JobOptions(script, nproc, env=worker_env, timeout=timeout_s)) as job:
        return job.wait()


def report_of(run: TorchrunRun, script: Path, nproc: int) -> dict[str, Any]:
    """Return the report of a composed script that has run under torchrun."""
    failed = {worker.rank: worker.exitcode for worker in run.workers if worker.exitcode is not None}
    endings = {"late": is_late(run.failure), "exits": failed}
    return report(script.parent, nproc, endings, run.output)


def is_late(failure: Exception | None) -> bool:
    """Return whether a job failed because it timed out."""
    return failure is not None and str(failure).startswith(TIMED_OUT_AFTER)


def run_with_forked_workers(
    script: Path,
    nproc: int | Sequence[int],
    *,
    max_restarts: int = 0,
    timeout_s: float = 8.0,
    grace_s: float = 0.3,
    keep_others_running: bool = False,
    monitor: Monitor | None = None,
) -> dict[str, Any]:
    """Run a composed script like a single agent, but within milliseconds, with workers forked from this rank.

    nproc: the number of workers, or a list with the number for each attempt of a job whose size changes. Each
    worker's environment is the same as under torchrun. When a worker fails, the others are terminated
    `grace_s` later (at once if it was killed), and all workers are restarted, up to `max_restarts` times.
    With `keep_others_running`, no worker is terminated. The file for `@record` is `error_file(script, rank)`.

    Workers ask the monitor (`script_worker.ask`), which may kill them: "killed" lists the killed workers of
    each attempt. If it stops the job, there is no further attempt, and no rank has failed.
    """
    # limit the processor time of all attempts together, because on a busy machine workers wait for a
    # core
    budget = Budget(lambda: living_children(os.getpid()), timeout_s, time.monotonic())
    monitor = monitor or Monitor()
    sizes = [nproc] * (max_restarts + 1) if isinstance(nproc, int) else list(nproc)
    size, endings_of_attempt = 0, _AttemptEnd()
    killed: list[list[int]] = []
    for attempt, size in enumerate(sizes):
        # use a new port for each attempt, because the previous store might still hold its port
        port = free_port()
        monitor.begin(attempt, size)
        started: list[_Worker] = []
        for rank in range(size):
            started.append(
                _fork_worker(script, rank, size, attempt, len(sizes) - 1, port, started, monitor)
            )
        endings_of_attempt = _wait_for_workers(
            started, budget, float("inf") if keep_others_running else grace_s, monitor
        )
        monitor.end()
        killed.append(sorted(endings_of_attempt.killed))
        is_over = endings_of_attempt.stopped or not any(endings_of_attempt.exits.values())
        if is_over or budget.is_spent(time.monotonic()):
            break
        if attempt + 1 < len(sizes):
            # forget the errors of this attempt, because the next attempt continues after it
            _remove_errors(script, f"{attempt}-*.error")
    is_late_job = budget.is_spent(time.monotonic()) and not endings_of_attempt.stopped
    exits = endings_of_attempt.exits
    if endings_of_attempt.stopped:  # after the stop, reports of other workers are only consequences
        exits = {}
        _remove_errors(script, "*.error")
    endings = {
        "late": is_late_job,
        "exits": exits,
        "by_the_clock": is_late_job and budget.by_the_clock,
        "was_computing": is_late_job and budget.was_computing,
    }
    output = [read_head(script.parent / f"{rank}.output", _MAX_TEXT) for rank in range(size)]
    frames_by_rank = {
        rank: _read_frames(script, rank)
        for rank in range(size)
        if is_late_job and rank not in exits
    }
    return {
        **report(script.parent, size, endings, output),
        "killed": killed,
        "seconds": timeout_s,
        "stands": {rank: frames for rank, frames in frames_by_rank.items() if frames},
    }


def _remove_errors(script: Path, pattern: str) -> None:
    for path in script.parent.glob(pattern):
        path.unlink()


def error_file(script: Path, rank: int) -> Path:
    """Return the path of the file written by a forked worker's `@record`."""
    return script.parent / f"{rank}.error.json"


def _read_frames(script: Path, rank: int) -> list[list[Any]]:
    """Return a worker's frames at its timeout, outermost first."""
    text = read_head(script.parent / f"{rank}.stands", _MAX_TEXT)
    return [[file, int(line), name] for file, line, name in _FRAME_LINE_PATTERN.findall(text)][::-1]


def report(
    folder: Path, world_size: int, endings: Mapping[str, Any], output: Sequence[str]
) -> dict[str, Any]:
    """Collect the value or error of each rank's last attempt, and how the job ended."""
    values: list[Any] = [None] * world_size
    errors: list[Any] = [None] * world_size
    replaced: set[str] = set()
    attempts = 0
    for path in sorted(folder.glob("*-*.*"), key=lambda path: int(path.name.split("-")[0])):
        attempt, _, rank = path.stem.partition("-")
        # the answer may have written files with such names
        if not rank.isdigit() or int(rank) >= world_size:
            continue
        attempts = max(attempts, int(attempt))
        if path.suffix == ".value":
            # use plain data, never a pickle, because the answer can write into this folder
            values[int(rank)] = wire.decode(bytearray(path.read_bytes()))
            # the error is from an earlier attempt, after which the worker was restarted
            errors[int(rank)] = None
        elif path.suffix == ".error":
            errors[int(rank)] = json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".replaced":
            replaced.update(read_head(path, _MAX_TEXT).split("\n"))
    return {
        "values": values,
        "errors": errors,
        "output": output,
        "replaced": sorted(replaced),
        "late": bool(endings["late"]),
        "by_the_clock": bool(endings.get("by_the_clock")),
        "was_computing": bool(endings.get("was_computing")),
        "exits": dict(endings["exits"]),
    }


@dataclass
class _Worker:
    """A forked worker. connection: its connection to the monitor, or None once the worker has closed it."""

    pid: int
    rank: int
    connection: socket.socket | None
    received: bytes = b""


def _fork_worker(
    script: Path,
    rank: int,
    nproc: int,
    attempt: int,
    max_restarts: int,
    port: int,
    others: Sequence[_Worker],
    monitor: Monitor,
) -> _Worker:
    own_socket, worker_socket = socket.socketpair()
    pid = os.fork()
    if pid:
        # if this end stayed open here, the connection would never look closed
        worker_socket.close()
        own_socket.setblocking(False)
        return _Worker(pid, rank, own_socket)
    code = 1
    try:
        os.setsid()  # a signal to the process group of one worker must not reach the others
        own_socket.close()
        monitor.close_in_worker()
        # an answer must not be able to write to the other workers' connections as the monitor
        for other in others:
            if other.connection is not None:
                other.connection.close()
        script_worker.connect_to_starter(worker_socket)
        output = os.open(
            script.parent / f"{rank}.output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
        )
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            GROUP_RANK="0",
            WORLD_SIZE=str(nproc),
            LOCAL_WORLD_SIZE=str(nproc),
            GROUP_WORLD_SIZE="1",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            TORCHELASTIC_RUN_ID="fork",
            TORCHELASTIC_RESTART_COUNT=str(attempt),
            TORCHELASTIC_MAX_RESTARTS=str(max_restarts),
            TORCHELASTIC_ERROR_FILE=str(error_file(script, rank)),
        )
        sys.argv = [str(script)]
        # use a handler written in C, which responds even while Python waits inside gloo
        faulthandler.register(
            signal.SIGUSR2, (script.parent / f"{rank}.stands").open("wb"), all_threads=False
        )
        script_worker.main(script.parent)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        # exit without cleanup, because this is a copy of the rank, whose exit handlers must not run in the
        # worker
        os._exit(code)


@dataclass(frozen=True)
class _AttemptEnd:
    """The exit codes of an attempt's workers, if they exited or were killed.

    killed: workers killed by the monitor. stopped: whether the monitor has ended the whole job.
    """

    exits: dict[int, int] = field(default_factory=dict)
    killed: frozenset[int] = frozenset()
    stopped: bool = False


def _wait_for_workers(
    workers: Sequence[_Worker], budget: Budget, grace_s: float, monitor: Monitor
) -> _AttemptEnd:
    """Wait for the workers of one attempt, and let the monitor answer their questions.

    After a worker has failed, the others are terminated within a short time (at once if it was killed).
    """
    exits: dict[int, int] = {}
    killed: set[int] = set()
    stopped = False
    deadline = float("inf")
    while len(exits) < len(workers) and not stopped:
        for worker in workers:
            if worker.rank in exits:
                continue
            intervention = _answer_question(worker, monitor)
            stopped |= intervention is Intervention.STOP
            if intervention is Intervention.KILL:
                _send_signal(worker.pid, signal.SIGKILL)
                killed.add(worker.rank)
            # before answering any other question, wait until a kill by the monitor is complete
            pid, status = os.waitpid(worker.pid, 0 if worker.rank in killed else os.WNOHANG)
            if pid:
                code = exits[worker.rank] = os.waitstatus_to_exitcode(status)
                if code and grace_s < float("inf"):
                    # a killed worker reports nothing, so the others' reports can only be consequences
                    wait_s = 0.0 if code == -signal.SIGKILL else grace_s
                    deadline = min(deadline, time.monotonic() + wait_s)
        now = time.monotonic()
        if now >= deadline or budget.is_spent(now):
            break
        running = [worker for worker in workers if worker.rank not in exits]
        connections = [worker.connection for worker in running if worker.connection is not None]
        # a worker that has closed its connection has ended, or is about to
        select.select(
            connections,
            [],
            [],
            _POLL_INTERVAL_S if len(connections) == len(running) else _SHORT_INTERVAL_S,
        )
    remaining = [worker for worker in workers if worker.rank not in exits]
    if remaining and budget.is_spent(time.monotonic()):
        for worker in remaining:  # faulthandler writes the frames, even from inside C++
            _send_signal(worker.pid, signal.SIGUSR2)
        select.select([], [], [], _DUMP_TIMEOUT_S)
    for worker in remaining:
        _send_signal(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)
    for worker in workers:
        if worker.connection is not None:
            worker.connection.close()
    return _AttemptEnd(exits, frozenset(killed), stopped)


def _answer_question(worker: _Worker, monitor: Monitor) -> Intervention | None:
    """Answer a worker's next question, if there is one, without waiting.

    Return the monitor's intervention, if any.
    """
    if worker.connection is None:
        return None
    with contextlib.suppress(BlockingIOError, ConnectionError):
        part = worker.connection.recv(1 << 16)
        worker.received += part
        if not part or len(worker.received) > _MAX_REQUEST_BYTES:
            worker.connection.close()
            worker.connection = None
        elif worker.received.endswith(b"\n"):
            question, worker.received = worker.received, b""
            try:
                reply = monitor.answer(worker.rank, json.loads(question))
            except (ValueError, TypeError, LookupError, AttributeError):
                # The check's driver asks only questions that the monitor can answer
                reply = None
            if isinstance(reply, Intervention):
                return reply
            worker.connection.send(json.dumps(reply).encode() + b"\n")
    return None


def _send_signal(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)
