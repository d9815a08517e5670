"""Inside a rank: compose a script from an answer, run it under a launcher, report what came of it.

    Source + worker driver + inputs --compose--> folder/main.py
    folder --a launcher: under_torchrun, under_fork--> reports in the folder --> a report for each rank

Called by the drivers of script exercises, which run in one rank of their own: whatever they start
ends with that rank. `script_runs` makes a Run of the report in the launching process.
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
from helpers.jobs.owned import head_of
from helpers.jobs.ports import free_port
from helpers.jobs.run import TorchrunRun
from helpers.jobs.torchrun import Asked, start_job
from helpers.ranks import wire
from helpers.ranks.budget import Budget
from helpers.ranks.processes import living_children

ROOT = str(Path(__file__).parents[2])
_MAIN = """import os
import sys
from pathlib import Path

from helpers.checks.script_worker import main

main(Path(__file__).parent)
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)  # no teardown of the interpreter: gloo's threads must not outlive Python's state
"""
_MAX_TEXT = 20_000
_WHERE = re.compile(r'  File "([^"]*)", line (\d+) in (\S+)')
_LOOK_S, _SETTLE_S = 0.01, 0.001
_DUMP_S = 0.1
"""How long a worker may take to write down where it stands."""
_MOST_ASKED = 1 << 20
"""Bytes of a question. A worker that sends more without a line's end is not listened to any more."""


class Instead(Enum):
    """What a referee does in place of an answer: kill the worker that asks, or end the whole job."""

    KILL = "kill"
    STOP = "stop"


class Referee:
    """Answers the workers of a forked job, in the process that started them and runs no answer's code.

    By what it is asked it knows how far each worker has come, and it alone decides which one is killed, and
    when. This one knows nothing.
    """

    def begin(self, attempt: int, size: int) -> None:
        """Take note of an attempt that is about to start, with `size` workers."""

    def answer(self, rank: int, question: list[Any]) -> Any:
        """Answer a worker by plain data or by an `Instead`. The question may come from a hostile answer."""
        return None

    def end(self) -> None:
        """Take note of the end of the attempt: all of its workers have ended."""

    def leave_worker(self) -> None:
        """Let go, in a worker, of what it must not have: it was forked, with all that is in this process."""


@dataclass(frozen=True)
class Source:
    """An answer as a script exercise's driver gets it: not executed yet."""

    text: str
    name: str

    def build(self) -> Any:
        """Execute the source in this rank and give the answer itself."""
        from helpers.checks.answer_source import build

        return build(self.text, self.name)


def compose(answer: Source, driver: Callable[..., Any], inputs: Sequence[Any]) -> Path:
    """Write a script into a folder of its own in the temp folder; give its path.

    driver: what the script's processes call with the answer and the inputs, a module's function. They
    are other processes, so it is sent by its name.
    """
    folder, name = (
        Path(tempfile.mkdtemp(prefix="script-")),
        f"{driver.__module__}:{driver.__name__}",
    )
    (folder / "answer.py").write_text(answer.text)
    (folder / "job.json").write_text(json.dumps({"answer": answer.name, "driver": name}))
    (folder / "inputs").write_bytes(b"".join(wire.encode(list(inputs))))
    (folder / "main.py").write_text(_MAIN)
    return folder / "main.py"


def under_torchrun(
    script: Path,
    nproc_per_node: int,
    *,
    nnodes: int = 1,
    rdzv: str = "c10d",
    max_restarts: int = 0,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 12.0,
) -> dict[str, Any]:
    """Run a composed script under real torchrun agents and give its report."""
    run = run_under_torchrun(
        script,
        nproc_per_node,
        nnodes=nnodes,
        rdzv=rdzv,
        max_restarts=max_restarts,
        env=env,
        timeout_s=timeout_s,
    )
    return report(script.parent, nproc_per_node * nnodes, endings_of(run), run.output)


def run_under_torchrun(
    script: Path,
    nproc_per_node: int,
    *,
    nnodes: int = 1,
    rdzv: str = "c10d",
    max_restarts: int = 0,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 12.0,
) -> TorchrunRun:
    """Run a composed script under real torchrun agents and give all that they told."""
    asked = Asked(
        script,
        nproc_per_node,
        nnodes,
        rdzv=rdzv,
        max_restarts=max_restarts,
        env={"PYTHONPATH": ROOT, **(env or {})},
        timeout=timeout_s,
    )
    with start_job(asked) as job:
        return job.wait()


def under_fork(
    script: Path,
    nproc: int | Sequence[int],
    *,
    max_restarts: int = 0,
    timeout_s: float = 8.0,
    grace_s: float = 0.3,
    others_go_on: bool = False,
    referee: Referee | None = None,
) -> dict[str, Any]:
    """Run a composed script as one agent would, its workers forked from this rank: in milliseconds.

    nproc: how many workers; a list says it for each attempt, as of a job whose size changes. A worker finds
    the environment that torchrun gives. When one fails, the others are ended `grace_s` later (at once if it
    was killed), and all are started again, that many times; with `others_go_on` nobody is ended. The file for
    `@record` is `error_file(script, rank)`.

    Workers ask the referee (`script_worker.ask`), who may have them killed: "killed" names those of each
    attempt. When it stops the job, no attempt follows, and nobody has failed.
    """
    budget = Budget(lambda: living_children(os.getpid()), timeout_s, time.monotonic())
    referee = referee or Referee()
    exits: dict[int, int] = {}
    sizes = [nproc] * (max_restarts + 1) if isinstance(nproc, int) else list(nproc)
    size = 0
    killed: list[list[int]] = []
    stopped = False
    for attempt, size in enumerate(sizes):
        port = free_port()
        referee.begin(attempt, size)
        started: list[_Worker] = []
        for rank in range(size):
            started.append(
                _fork(script, rank, size, attempt, len(sizes) - 1, port, started, referee)
            )
        wait = _Waiting(started, budget, float("inf") if others_go_on else grace_s, referee)
        exits = wait.for_all()
        referee.end()
        killed.append(sorted(wait.killed))
        stopped = wait.stopped
        if stopped or not any(exits.values()) or budget.is_spent(time.monotonic()):
            break
        if attempt + 1 < len(sizes):
            # what they said is settled: the next ones go on from there
            for path in script.parent.glob(f"{attempt}-*.error"):
                path.unlink()
    late = budget.is_spent(time.monotonic()) and not stopped
    if stopped:  # what the others said since can only follow from that
        exits = {}
        for path in script.parent.glob("*.error"):
            path.unlink()
    endings = {"late": late, "exits": exits, "by_the_clock": late and budget.by_the_clock}
    output = [head_of(script.parent / f"{rank}.output", _MAX_TEXT) for rank in range(size)]
    stands = {rank: _stands(script, rank) for rank in range(size) if late and rank not in exits}
    return {
        **report(script.parent, size, endings, output),
        "killed": killed,
        "seconds": timeout_s,
        "stands": {rank: frames for rank, frames in stands.items() if frames},
    }


def error_file(script: Path, rank: int) -> Path:
    """Return where a forked worker's `@record` writes."""
    return script.parent / f"{rank}.error.json"


def _stands(script: Path, rank: int) -> list[list[Any]]:
    """Return the frames in which a worker stood when its time was up, outermost first."""
    said = head_of(script.parent / f"{rank}.stands", _MAX_TEXT)
    return [[file, int(line), name] for file, line, name in _WHERE.findall(said)][::-1]


def report(
    folder: Path, world_size: int, endings: Mapping[str, Any], output: Sequence[str]
) -> dict[str, Any]:
    """Gather what each rank's last attempt left: its value or its error, and how it all ended."""
    values: list[Any] = [None] * world_size
    errors: list[Any] = [None] * world_size
    attempts = 0
    for path in sorted(folder.glob("*-*.*"), key=lambda path: int(path.name.split("-")[0])):
        attempt, _, rank = path.stem.partition("-")
        if not rank.isdigit() or int(rank) >= world_size:
            continue
        attempts = max(attempts, int(attempt))
        if path.suffix == ".value":
            values[int(rank)] = wire.decode(bytearray(path.read_bytes()))
            errors[int(rank)] = None
        elif path.suffix == ".error":
            errors[int(rank)] = json.loads(path.read_text())
    return {
        "values": values,
        "errors": errors,
        "output": output,
        "late": bool(endings["late"]),
        "by_the_clock": bool(endings.get("by_the_clock")),
        "exits": dict(endings["exits"]),
    }


def endings_of(run: TorchrunRun) -> dict[str, Any]:
    """Say whether a job's time was up, and with what its workers ended that failed."""
    failed = {worker.rank: worker.exitcode for worker in run.workers if worker.exitcode is not None}
    late = run.failure is not None and str(run.failure).startswith("not done after")
    return {"late": late, "exits": failed}


@dataclass
class _Worker:
    """A forked worker. line: on which it asks the referee, whole lines only; None once it has closed it."""

    pid: int
    rank: int
    line: socket.socket | None
    heard: bytes = b""


def _fork(
    script: Path,
    rank: int,
    nproc: int,
    attempt: int,
    max_restarts: int,
    port: int,
    others: Sequence[_Worker],
    referee: Referee,
) -> _Worker:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        ours.setblocking(False)
        return _Worker(pid, rank, ours)
    code = 1
    try:
        os.setsid()
        ours.close()
        referee.leave_worker()
        for other in others:  # an answer must not speak to them in the referee's name
            if other.line is not None:
                other.line.close()
        script_worker.connect_to_starter(theirs)
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
        faulthandler.register(
            signal.SIGUSR2, (script.parent / f"{rank}.stands").open("wb"), all_threads=False
        )
        script_worker.main(script.parent)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        os._exit(code)


@dataclass
class _Waiting:
    """Waits for the workers of one attempt, and lets the referee answer what they ask.

    When one has failed, the others get a moment (none if it was killed) and are ended.
    """

    workers: Sequence[_Worker]
    budget: Budget
    grace_s: float
    referee: Referee
    killed: set[int] = field(default_factory=set)
    stopped: bool = False

    def for_all(self) -> dict[int, int]:
        """Return the exit code of each worker that ended by itself or was killed by the referee."""
        exits: dict[int, int] = {}
        give_up = float("inf")
        while len(exits) < len(self.workers) and not self.stopped:
            for worker in self.workers:
                if worker.rank in exits:
                    continue
                self._listen(worker)
                status = os.waitpid(worker.pid, 0 if worker.rank in self.killed else os.WNOHANG)
                if status[0]:
                    code = exits[worker.rank] = os.waitstatus_to_exitcode(status[1])
                    if code and self.grace_s < float("inf"):
                        # a killed worker had no word to say: those of the others can only follow from that
                        was_killed = code == -signal.SIGKILL
                        grace_s = 0.0 if was_killed else self.grace_s
                        give_up = min(give_up, time.monotonic() + grace_s)
            now = time.monotonic()
            if now >= give_up or self.budget.is_spent(now):
                break
            left = [worker for worker in self.workers if worker.rank not in exits]
            lines = [worker.line for worker in left if worker.line is not None]
            # one that has closed its line has ended, or is about to
            select.select(lines, [], [], _LOOK_S if len(lines) == len(left) else _SETTLE_S)
        self._end([worker for worker in self.workers if worker.rank not in exits])
        return exits

    def _listen(self, worker: _Worker) -> None:
        """Answer a worker's next question, if it has asked one; never wait for it."""
        if worker.line is None:
            return
        with contextlib.suppress(BlockingIOError, ConnectionError):
            part = worker.line.recv(1 << 16)
            worker.heard += part
            if not part or len(worker.heard) > _MOST_ASKED:
                worker.line.close()
                worker.line = None
                return
            if not worker.heard.endswith(b"\n"):
                return
            said, worker.heard = worker.heard, b""
            try:
                told = self.referee.answer(worker.rank, json.loads(said))
            except (ValueError, TypeError, LookupError, AttributeError):
                told = None  # no driver of the check asks what cannot be answered
            if told is Instead.KILL:
                _kill(worker.pid, signal.SIGKILL)
                self.killed.add(worker.rank)
            elif told is Instead.STOP:
                self.stopped = True
            else:
                worker.line.send(json.dumps(told).encode() + b"\n")

    def _end(self, still: Sequence[_Worker]) -> None:
        if still and self.budget.is_spent(time.monotonic()):
            for worker in still:  # faulthandler's answer, also from within C++
                _kill(worker.pid, signal.SIGUSR2)
            select.select([], [], [], _DUMP_S)
        for worker in still:
            _kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)
        for worker in self.workers:
            if worker.line is not None:
                worker.line.close()


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
