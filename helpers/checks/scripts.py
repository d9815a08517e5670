"""Inside a rank: compose a script from an answer, run it under a launcher, report what came of it.

    Source + worker programme + inputs --compose--> folder/main.py
    folder --a launcher: under_torchrun, under_fork--> reports in the folder --> a report for each rank

Called by the programmes of script exercises, which run in one rank of their own: whatever they start
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
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.checks import script_worker
from helpers.checks.folder_watch import watching
from helpers.jobs.owned import head_of
from helpers.jobs.ports import free_port
from helpers.jobs.run import TorchrunRun
from helpers.jobs.torchrun_job import start_job
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


@dataclass(frozen=True)
class Source:
    """An answer as a script exercise's programme gets it: not executed yet."""

    text: str
    name: str

    def build(self) -> Any:
        """Execute the source in this rank and give the answer itself."""
        from helpers.checks.drive import build

        return build(self.text, self.name)


def compose(answer: Source, programme: Callable[..., Any], inputs: Sequence[Any]) -> Path:
    """Write a script into a folder of its own in the temp folder; give its path.

    programme: what the script's processes call with the answer and the inputs, a module's function. They
    are other processes, so it travels by its name.
    """
    folder, name = (
        Path(tempfile.mkdtemp(prefix="script-")),
        f"{programme.__module__}:{programme.__name__}",
    )
    (folder / "answer.py").write_text(answer.text)
    (folder / "job.json").write_text(json.dumps({"answer": answer.name, "programme": name}))
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
    with start_job(
        script,
        nproc_per_node,
        nnodes=nnodes,
        rdzv=rdzv,
        max_restarts=max_restarts,
        env={"PYTHONPATH": ROOT, **(env or {})},
        timeout=timeout_s,
    ) as job:
        return job.wait()


def under_fork(
    script: Path,
    nproc: int | Sequence[int],
    *,
    max_restarts: int = 0,
    timeout_s: float = 8.0,
    grace_s: float = 0.3,
    others_go_on: bool = False,
    watched: Path | None = None,
) -> dict[str, Any]:
    """Run a composed script as one agent would, its workers forked from this rank: in milliseconds.

    nproc: how many workers; a list says it for each attempt, as of a job whose size changes. A worker finds
    the environment that torchrun gives. When one fails, the others are ended `grace_s` later (at once if it
    was killed), and all are started again, so many times; with `others_go_on` nobody is ended. The file for
    `@record` is `error_file(script, rank)`.

    A worker that must die asks for it (`script_worker.die`) and is killed from here: "killed" names, for each
    attempt, the workers that were. watched: a folder; "changed" says what the kernel saw there in each
    attempt. No worker can make up either of the two.
    """
    budget = Budget(lambda: living_children(os.getpid()), timeout_s, time.monotonic())
    exits: dict[int, int] = {}
    sizes = [nproc] * (max_restarts + 1) if isinstance(nproc, int) else list(nproc)
    size = 0
    killed: list[list[int]] = []
    changed: list[dict[str, Any]] = []
    with watching(watched) as watch:
        for attempt, size in enumerate(sizes):
            port = free_port()
            started = [
                _fork(script, rank, size, attempt, len(sizes) - 1, port) for rank in range(size)
            ]
            exits, asked = _wait_for_all(started, budget, float("inf") if others_go_on else grace_s)
            killed.append(sorted(asked))
            if watch is not None:
                changed.append(watch.taken().plain())
            if not any(exits.values()) or budget.is_spent(time.monotonic()):
                break
            if attempt + 1 < len(sizes):
                # what they said is settled: the next ones go on from there
                for path in script.parent.glob(f"{attempt}-*.error"):
                    path.unlink()
    late = budget.is_spent(time.monotonic())
    endings = {"late": late, "exits": exits, "by_the_clock": late and budget.by_the_clock}
    output = [head_of(script.parent / f"{rank}.output", _MAX_TEXT) for rank in range(size)]
    stands = {rank: _stands(script, rank) for rank in range(size) if rank not in exits}
    return {
        **report(script.parent, size, endings, output),
        "killed": killed,
        "changed": changed,
        "seconds": timeout_s,
        "stands": {rank: frames for rank, frames in stands.items() if frames},
    }


def error_file(script: Path, rank: int) -> Path:
    """Give where a forked worker's `@record` writes."""
    return script.parent / f"{rank}.error.json"


def _stands(script: Path, rank: int) -> list[list[Any]]:
    """Give the frames in which a worker stood when its time was up, outermost first."""
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


@dataclass(frozen=True)
class _Worker:
    """A forked worker. asks: the pipe by which it asks to be killed."""

    pid: int
    rank: int
    asks: int


def _fork(
    script: Path, rank: int, nproc: int, attempt: int, max_restarts: int, port: int
) -> _Worker:
    asks, asked = os.pipe()
    pid = os.fork()
    if pid:
        os.close(asked)
        os.set_blocking(asks, False)
        return _Worker(pid, rank, asks)
    code = 1
    try:
        os.setsid()
        os.close(asks)
        script_worker.serve_deaths(asked)
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


def _wait_for_all(
    workers: Sequence[_Worker], budget: Budget, grace_s: float
) -> tuple[dict[int, int], set[int]]:
    """Wait for workers; when one has failed, give the others a moment and end them.

    Return the exit code of each that ended by itself or was killed as it asked, and the ranks of the latter.
    """
    exits: dict[int, int] = {}
    killed: set[int] = set()
    give_up = float("inf")
    while len(exits) < len(workers):
        for worker in workers:
            if worker.rank in exits:
                continue
            if _asks_to_die(worker):
                _kill(worker.pid, signal.SIGKILL)
                killed.add(worker.rank)
                status = os.waitpid(worker.pid, 0)
            else:
                status = os.waitpid(worker.pid, os.WNOHANG)
            if status[0]:
                code = exits[worker.rank] = os.waitstatus_to_exitcode(status[1])
                if code and grace_s < float("inf"):
                    # a killed worker had no word to say: those of the others can only follow from that
                    was_killed = code == -signal.SIGKILL
                    give_up = min(give_up, time.monotonic() + (0.0 if was_killed else grace_s))
        now = time.monotonic()
        if now >= give_up or budget.is_spent(now):
            break
        left = [worker.asks for worker in workers if worker.rank not in exits]
        # A worker that has ended makes its pipe readable: then this waits no longer, but not for nothing.
        if select.select(left, [], [], _LOOK_S)[0]:
            select.select([], [], [], _SETTLE_S)
    still = [worker for worker in workers if worker.rank not in exits]
    if still and budget.is_spent(time.monotonic()):
        for worker in still:  # faulthandler's answer, also from within C++
            _kill(worker.pid, signal.SIGUSR2)
        select.select([], [], [], _DUMP_S)
    for worker in still:
        _kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)
    for worker in workers:
        os.close(worker.asks)
    return exits, killed


def _asks_to_die(worker: _Worker) -> bool:
    with contextlib.suppress(BlockingIOError):
        return bool(os.read(worker.asks, 1))  # b"" once it has ended
    return False


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
