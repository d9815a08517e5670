"""Inside a process of a script exercise: do what the exercise's worker programme says, leave a report.

The composed `main.py` calls `main`. Its process was started by torchrun, mpiexec or a fork, and finds
everything in the folder of its script; it leaves one file for each attempt and rank, which `scripts`
reads. What it cannot do goes to stderr and into its exit code, as in any script.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from helpers.checks.drive import build
from helpers.ranks import wire
from helpers.ranks.worker import describe_error

RANK_NAMES = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")
"""Where launchers say which rank a process is: torchrun, MPICH's mpiexec, Open MPI's."""


def main(folder: Path) -> None:
    """Run the programme that `job.json` names with the answer; report its value or its exception."""
    job = json.loads((folder / "job.json").read_text())
    inputs = wire.decode(bytearray((folder / "inputs").read_bytes()))
    try:
        answer = build((folder / "answer.py").read_text(), job["answer"])
        value = programme_of(job["programme"])(answer, *inputs)
        body = b"".join(wire.encode(value))
        _leave(folder / f"{whoami()}.value", body)
        _finalize_mpi()
    except BaseException as error:
        _leave(folder / f"{whoami()}.error", json.dumps(describe_error(error)).encode())
        raise


class _Deaths:
    """How this worker asks the process that forked it to be killed."""

    asks = -1


def serve_deaths(asks: int) -> None:
    """Take the pipe by which this worker can ask to be killed."""
    _Deaths.asks = asks


def die() -> NoReturn:
    """Ask the process that started this worker for SIGKILL, and wait for it.

    Not `os.kill` from within: an answer can put anything under that name. If it prevents this call, the
    starting process knows that the death which was planned did not take place.
    """
    os.write(_Deaths.asks, b"x")
    while True:
        signal.pause()


def programme_of(name: str) -> Callable[..., Any]:
    """Give the function that "module:function" names."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def whoami() -> str:
    """Give this process's name in the reports: its attempt and its rank."""
    rank = next((os.environ[name] for name in RANK_NAMES if name in os.environ), "0")
    return f"{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}-{rank}"


def _finalize_mpi() -> None:
    """End MPI where the programme used it: only now, as mpiexec may leave once all have done so."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and not mpi.Is_finalized():
        mpi.Finalize()


def _leave(path: Path, body: bytes) -> None:
    """Write a report so that a reader finds all of it or nothing."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(body)
    unfinished.replace(path)
