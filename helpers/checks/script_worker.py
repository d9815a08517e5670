"""Inside a process of a script exercise: run the exercise's worker driver, and leave a report.

The composed `main.py` calls `main`. Its process was started by torchrun, mpiexec or a fork, and finds all its
files in the folder of its script. For each attempt and rank, it writes a file to be read by `scripts`. As in
any script, errors appear on stderr and in the exit code.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from helpers.checks.load_answer import build
from helpers.checks.replaced import watch_functions
from helpers.ranks import wire
from helpers.ranks.tracebacks import describe_error

RANK_NAMES = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")
"""Variables in which launchers store a process's rank: torchrun, MPICH's mpiexec, Open MPI's."""


def main(folder: Path) -> None:
    """Run the driver named in `job.json` with the answer; report its value or its exception."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    inputs = wire.decode(bytearray((folder / "inputs").read_bytes()))
    try:
        # Import these first, because the answer may later replace functions used for comparing, for encoding
        # the value, or for finding replaced functions.
        driver, encode = find_driver(job["driver"]), wire.encode
        compare = watch_functions(_make_reporter(folder / f"{report_name()}.replaced"))
        answer = build((folder / "answer.py").read_text(encoding="utf-8"), job["answer"])
        value = driver(answer, *inputs)
        compare()
        body = b"".join(encode(value))
        _write_report(folder / f"{report_name()}.value", body)
        _finalize_mpi()
    except BaseException as error:
        # report the error and raise it again, because the launcher must see the script's exit code
        _write_report(
            folder / f"{report_name()}.error", json.dumps(asdict(describe_error(error))).encode()
        )
        raise


def _make_reporter(path: Path) -> Callable[[str], None]:
    """Return a function that writes names into a file without looking up anything an answer can replace."""
    path_text, open_file, write = str(path), os.open, os.write
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC

    def report(names: str) -> None:
        write(open_file(path_text, flags, 0o600), names.encode())

    return report


_connection: socket.socket | None = None
# DCP's threads, which write files, also ask. Only one thread may ask at a time, because otherwise threads
# would read each other's answers.
_ask_lock = threading.Lock()


def connect_to_starter(connection: socket.socket) -> None:
    """Store the connection through which this worker can ask the process that forked it."""
    global _connection
    _connection = connection


def ask(*question: Any) -> Any:
    """Ask the process that started this worker, and return its answer: plain JSON data.

    That process never runs an answer's code, so its record of its answers and their times can be trusted. It
    may kill this worker instead of answering. The worker does not kill itself, because an answer could
    replace any function needed for that.
    """
    connection = _connection
    assert connection is not None, "this worker was not forked by `run_with_forked_workers`"
    with _ask_lock:
        connection.sendall(json.dumps(question).encode() + b"\n")
        reply = b""
        while not reply.endswith(b"\n"):
            part = connection.recv(1 << 16)
            if not part:
                signal.pause()  # the starter has exited, and this worker will be terminated with it
            reply += part
        return json.loads(reply)


def find_driver(name: str) -> Callable[..., Any]:
    """Return the function named by "module:function"."""
    module, _, function = name.partition(":")
    driver: Callable[..., Any] = getattr(import_module(module), function)
    return driver


def report_name() -> str:
    """Return this process's name in the reports: its attempt and its rank."""
    # do not use a group, because it might not exist yet, or ever: mpiexec starts processes without torch's
    # variables
    rank = next((os.environ[name] for name in RANK_NAMES if name in os.environ), "0")
    return f"{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}-{rank}"


def _finalize_mpi() -> None:
    """Finalize MPI if the driver used it. Call this last, because mpiexec may exit afterwards."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and not mpi.Is_finalized():
        mpi.Finalize()


def _write_report(path: Path, body: bytes) -> None:
    """Write a report atomically: a reader finds either the whole report or none."""
    # a worker may be killed at any moment, including during this write
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(body)
    unfinished.replace(path)
