"""Programs started and owned by this process. They always end with this process.

`OwnedPrograms` is the owner's side of `supervisor.py`. It is used by `torchrun` in a notebook, and inside a
rank by checks that run an answer as a script.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.jobs.supervisor import RECORD_HEADER
from helpers.ranks.json_messages import Messages
from helpers.ranks.stop import raise_if_stopped

_REPLY_TIMEOUT_S = 10.0
_ROOT = str(Path(__file__).parents[2])


@dataclass(frozen=True)
class OutputPiece:
    """A piece of output. stream: 1 for stdout, 2 for stderr. at_s: its arrival time, in seconds."""

    stream: int
    at_s: float
    text: str


@dataclass
class OwnedPrograms:
    """A temporary folder and the programs started for it. Use it in a `with` statement."""

    folder: Path = field(default_factory=lambda: _new_folder())
    # The process id of every started program, by its key, including ended ones.
    pids: dict[str, int] = field(default_factory=dict)
    # Each program's exit code, or the negative number of the signal that killed it.
    exits: dict[str, int] = field(default_factory=dict)
    _ended: bool = False

    def __enter__(self) -> OwnedPrograms:
        ours, theirs = socket.socketpair()
        self.control = Messages(ours)
        program = (
            f"import sys; sys.path.insert(0, {_ROOT!r}); from helpers.jobs.supervisor import main; "
            f"main({theirs.fileno()}, {str(self.folder)!r})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program],  # -S: no installed package is needed
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Only the owner reacts to a Ctrl-C.
        )
        theirs.close()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.control.close()
        try:
            self._process.wait(_REPLY_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(
        self, key: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | str
    ) -> None:
        """Start a program under a key of your choice. Raise OSError if this is impossible."""
        message = {"do": "start", "key": key, "argv": list(argv), "env": dict(env)}
        self.control.send({**message, "cwd": str(cwd), "record": str(self._output_file(key))})
        deadline = time.monotonic() + _REPLY_TIMEOUT_S
        while key not in self.pids:
            if time.monotonic() > deadline:
                raise OSError(f"{argv[0]} did not start within {_REPLY_TIMEOUT_S:g} s")
            self.poll(0.05)

    def running(self) -> list[str]:
        """Return the keys of the programs that have not ended, in the order of their start."""
        return [key for key in self.pids if key not in self.exits]

    def alive(self) -> list[int]:
        """Return the process ids of the programs that have not ended."""
        return [self.pids[key] for key in self.running()]

    def wait(self, seconds: float) -> bool:
        """Wait until every program has ended. Return whether all programs ended in time."""
        deadline = time.monotonic() + seconds
        while self.running() and time.monotonic() < deadline:
            self.poll(0.05)
        return not self.running()

    def send(self, key: str, number: int = signal.SIGTERM) -> None:
        """Send a signal to one program. Do nothing if it has ended."""
        if key in self.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[key], number)

    def pieces(self, key: str) -> list[OutputPiece]:
        """Return a program's output so far, in order of arrival."""
        try:
            data = self._output_file(key).read_bytes()
        except FileNotFoundError:
            return []
        pieces, at = [], 0
        while at + RECORD_HEADER.size <= len(data):
            stream, when_ns, length = RECORD_HEADER.unpack_from(data, at)
            at += RECORD_HEADER.size
            text = data[at : at + length].decode(errors="replace")
            pieces.append(OutputPiece(stream, when_ns / 1e9, text))
            at += length
        return pieces

    def poll(self, wait_s: float) -> None:
        """Read the supervisor's messages, waiting at most `wait_s` for the first one.

        Raise KeyboardInterrupt in a kernel's thread if Stop was pressed.
        """
        raise_if_stopped()
        self._receive(wait_s)

    def _receive(self, wait_s: float) -> None:
        try:
            messages = self.control.receive(wait_s)
        except EOFError:
            raise OSError("the process that owns the programs has exited") from None
        for message in messages:
            self._apply_message(message)

    def end(self) -> None:
        """End all programs and all processes started by them. Their output can still be read."""
        with contextlib.suppress(OSError):
            self.control.send({"do": "end"})
            deadline = time.monotonic() + _REPLY_TIMEOUT_S
            while not self._ended and time.monotonic() < deadline:
                self._receive(0.2)
        self._ended = False

    def _apply_message(self, message: dict[str, Any]) -> None:
        if "started" in message:
            key, pid = message["started"]
            self.pids[key] = pid
        elif "exit" in message:
            key, code = message["exit"]
            self.exits[key] = code
        elif "refused" in message:
            raise OSError(message["refused"][1])
        elif "ended" in message:
            self._ended = True

    def _output_file(self, key: str) -> Path:
        return self.folder / f"{key}.output"


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=f"real-ranks-{os.getpid()}-job-"))


def read_head(path: Path, max_bytes: int) -> str:
    """Return at most `max_bytes` bytes of an owned program's file, as text; "" if there is no file."""
    try:
        with path.open("rb") as file:
            return file.read(max_bytes).decode(errors="replace")
    except OSError:
        return ""
