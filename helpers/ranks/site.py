"""Where a rank server runs: beside its launcher, or behind walls that a grader puts up.

`Connection` asks a `Site` for the command, the environment and the folders of the server; ranks see
what the server sees.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

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

    def options(self) -> dict[str, Any]:
        """Give what subprocess.Popen needs: env, and descriptors to pass. Asked for first."""

    def command(self, source: str) -> list[str]:
        """Give what to execute so that Python runs `source` in this place."""

    def started(self, pid: int) -> None:
        """Hear that the command runs as process `pid`."""

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

    def options(self) -> dict[str, Any]:
        return {"env": dict(os.environ), "pass_fds": ()}

    def command(self, source: str) -> list[str]:
        # -P: a timeit.py or json.py in the learner's folder must not be taken for Python's own
        return [sys.executable, "-P", "-c", source]

    def started(self, pid: int) -> None:
        pass

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
