"""A small process that owns other programs, so that none of them can outlive the requesting process.

    owner (kernel or rank) ==control socket==> supervisor --starts--> torchrun agents --start--> workers
                             start, end        keeps their output, ends all remaining processes

torchrun's workers have separate sessions, so they survive if their agent is killed by SIGKILL. The supervisor
adopts every descendant that loses its parent (on Linux). It kills all these descendants when its owner
requests it, closes the socket, or dies. `owned` starts the supervisor without site-packages, so it imports
only the standard library, and modules of the course that need no other packages.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from helpers.ranks.json_messages import Messages
from helpers.ranks.processes import adopt_orphans, children_of, end_with_parent, kill_group

# Header of each piece of output in a program's file: stream (1 or 2), time in ns, length in bytes.
RECORD_HEADER = struct.Struct("!BQI")
MAX_OUTPUT_BYTES = 4 << 20
# The maximum size of a file written by a program, so that endless output cannot fill the disk.
MAX_FILE_BYTES = 256 << 20
_POLL_S = 0.2


def main(fd: int, folder: str) -> None:
    """Serve the owner at the other end of `fd` until it closes. Then end all programs and remove `folder`."""
    supervisor = Supervisor(Messages(socket.socket(fileno=fd)), os.getppid())
    try:
        supervisor.serve()
    except (EOFError, ConnectionError):
        pass
    finally:
        supervisor.end_all()
        shutil.rmtree(folder, ignore_errors=True)  # The owner may have died before removing it.


@dataclass
class _Program:
    """A started program, and the file for its output."""

    key: str
    process: subprocess.Popen[bytes]
    record: IO[bytes]
    # descriptor -> 1 for stdout, 2 for stderr
    streams: dict[int, int]
    written_bytes: int = 0


@dataclass
class Supervisor:
    """The running programs, and the socket to their owner."""

    control: Messages
    owner: int
    programs: list[_Program] = field(default_factory=list)

    def serve(self) -> None:
        """Start programs for the owner and report their exits, until the owner exits."""
        for number in (signal.SIGINT, signal.SIGHUP):  # Only the owner reacts to these signals.
            signal.signal(number, signal.SIG_IGN)
        adopt_orphans()
        while os.getppid() == self.owner:
            streams = [fd for program in self.programs for fd in program.streams]
            control = self.control.fileno()
            readable, _, _ = select.select([control, *streams], [], [], _POLL_S)
            for program in self.programs:
                self._keep_output(program, readable)
            if control in readable:
                self._execute()
            self._reap()

    def _execute(self) -> None:
        for message in self.control.receive():
            if message["do"] == "start":
                self._start(message)
            elif message["do"] == "end":
                self.end_all()
                self.control.send({"ended": True})

    def _start(self, message: dict[str, Any]) -> None:
        try:
            process = subprocess.Popen(
                message["argv"],
                cwd=message["cwd"],
                env=message["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_before_exec,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.control.send({"refused": [message["key"], str(error)]})
            return
        assert process.stdout is not None and process.stderr is not None
        streams = {process.stdout.fileno(): 1, process.stderr.fileno(): 2}
        record = Path(message["record"]).open("wb", buffering=0)  # noqa: SIM115
        self.programs.append(_Program(message["key"], process, record, streams))
        self.control.send({"started": [message["key"], process.pid]})

    def _keep_output(self, program: _Program, readable: list[int]) -> None:
        for fd in [fd for fd in program.streams if fd in readable]:
            data = os.read(fd, 1 << 16)
            if not data:
                del program.streams[fd]
            elif program.written_bytes < MAX_OUTPUT_BYTES:
                program.written_bytes += len(data)
                head = RECORD_HEADER.pack(program.streams[fd], time.time_ns(), len(data))
                program.record.write(head + data)

    def _reap(self) -> None:
        """Report ended programs, and reap adopted children."""
        for program in list(self.programs):
            # Workers hold copies of the pipes' ends, so only the exit of the program counts.
            if program.process.poll() is not None:
                for _ in range(64):
                    ready, _, _ = select.select(list(program.streams), [], [], 0)
                    if not ready:
                        break
                    self._keep_output(program, ready)
                self.programs.remove(program)
                program.record.close()
                for stream in (program.process.stdout, program.process.stderr):
                    assert stream is not None
                    stream.close()
                self.control.send({"exit": [program.key, program.process.returncode]})
        owned = {program.process.pid for program in self.programs}
        for pid in set(children_of(os.getpid())) - owned:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def end_all(self) -> None:
        """End every process below this one."""
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            # Kill agents first, because a running agent would restart its workers.
            mine = {x.process.pid for x in self.programs if x.process.returncode is None}
            left = set(children_of(os.getpid())) | mine
            if not left:
                break
            elsewhere = set() if sys.platform == "linux" else _descendants(left)
            for pid in [*(left & mine), *(left - mine), *elsewhere]:
                kill_group(pid)
            for program in self.programs:
                program.process.wait()
            for pid in left - mine:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        with contextlib.suppress(OSError):
            self._reap()


def _before_exec() -> None:
    """Prepare a program before its exec, so that it ends with the supervisor and cannot fill the disk."""
    # On SIGTERM an agent ends its workers, which a dead supervisor no longer can.
    end_with_parent(signal.SIGTERM)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (MAX_FILE_BYTES if hard < 0 else min(MAX_FILE_BYTES, hard), hard)
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _descendants(roots: set[int]) -> set[int]:
    """Return all descendants of `roots`, for systems without adoption. Call this before the roots end."""
    table = subprocess.run(["ps", "-Ao", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in table.splitlines()]
    found, grown = set(roots), True
    while grown:
        more = {pid for pid, parent in pairs if parent in found} - found
        found, grown = found | more, bool(more)
    return found - roots
