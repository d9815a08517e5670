"""Where a rank server runs: beside its launcher, or behind walls that a grader puts up.

`Connection` has a `Site` start the server; ranks see what the server sees.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from helpers.ranks import wire


@dataclass(frozen=True)
class Traffic:
    """What ranks have sent to each other over TCP, as the kernel counted it.

    sent: (from, to) -> bytes, framing included, on all connections that are open at both ends. open: how
    many those are. opened: how many connections were made since the ranks were started. datagrams: sent
    since then. problem: why nothing of this could be read, although the kernel allows it, or "".
    """

    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    open: int = 0
    opened: int = 0
    datagrams: int = 0
    problem: str = ""


class Process(Protocol):
    """A rank server as its launcher sees it."""

    pid: int

    def poll(self) -> int | None:
        """Give None while it is there."""

    def wait(self, timeout: float) -> int:
        """Wait for its end. Raise subprocess.TimeoutExpired if that does not come in time (seconds)."""

    def kill(self) -> None:
        """End it, and all that is in its session or place, without asking."""


class Spawned(subprocess.Popen[bytes]):
    """A rank server that was started as a program: the first process of its session."""

    def __init__(self, program: str, log: IO[bytes], **options: Any) -> None:
        # -P: a timeit.py or json.py in the learner's folder must not be taken for Python's own
        super().__init__(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a Ctrl-C or Stop for the kernel is not for the server
            **options,
        )

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def server_program(site: Site, control: int, method: str) -> str:
    """Give the text of a program that is a rank server."""
    return (
        f"import sys; sys.path.insert(0, {site.root!r}); from helpers.ranks.server import main; "
        f"main({control}, {method!r}, {site.scratch!r}, {site.emptied!r})"
    )


class Site(Protocol):
    """A place for one rank server.

    root: the folder in which the server finds `helpers`. scratch: where its worlds keep their files.
    Both are named as the server sees them. most_output: how many bytes a rank may print before it is
    ended, 0 for any number (what is kept of them is another matter). most_result: bytes of one value.
    emptied: folders that nobody but the ranks uses: emptied when a launch has ended.
    """

    root: str
    scratch: str
    most_output: int
    most_result: int
    emptied: tuple[str, ...]

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        """Start the server with this end of its control socket; `log` takes what it prints.

        method: "fork" or "spawn". env: what it needs besides the place's own environment.
        """

    def outside(self, pid: int) -> int:
        """Give the process id out here of what the server calls `pid`; 0 if there is none."""

    def starting(self) -> None:
        """Hear that ranks are about to be started."""

    def traffic(self, pids: Sequence[int]) -> Traffic | None:
        """Give what the ranks with these process ids have sent; None where nobody can tell from outside.

        Asked for when all of them have answered, and before they are ended.
        """

    def cwd(self) -> str:
        """Give the folder in which ranks start."""

    def path(self) -> list[str]:
        """Give the ranks' `sys.path`."""

    def close(self) -> None:
        """Remove what the place has left on disk, once the server has ended."""


class Beside:
    """Right beside the launcher: the same files, the same environment, the same process ids."""

    emptied: tuple[str, ...] = ()
    most_output = 0
    most_result = wire.MAX_BYTES[wire.RESULT]

    def __init__(self) -> None:
        self.root = str(Path(__file__).parents[2])
        self.scratch = tempfile.mkdtemp(prefix=f"real-ranks-{os.getpid()}-")

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        program = server_program(self, control, method)
        return Spawned(program, log, env={**os.environ, **env}, pass_fds=(control,))

    def outside(self, pid: int) -> int:
        return pid

    def starting(self) -> None:
        pass

    def traffic(self, pids: Sequence[int]) -> Traffic | None:
        return None

    def cwd(self) -> str:
        return os.getcwd()

    def path(self) -> list[str]:
        return list(sys.path)

    def close(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
