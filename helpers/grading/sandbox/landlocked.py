"""Weaker walls where bubblewrap is missing: Landlock around the files, the filter, the limits.

`walls` chooses it where the kernel has Landlock. Says by itself what it does not stop.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from helpers.grading.sandbox import landlock
from helpers.grading.sandbox.bubblewrap import LIBRARIES, SETTINGS, python_folders
from helpers.grading.sandbox.guard import threads_of
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import Staged
from helpers.ranks.run import Traffic
from helpers.ranks.site import Process, Spawned, server_program

_SYSTEM = (*LIBRARIES, "/proc", "/sys/devices", "/sys/class/net", "/sys/bus/pci")
_ETC = ("hosts", "host.conf", "resolv.conf", "nsswitch.conf", "passwd", "group")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm")

STOPS = (
    "reading or writing files but the system's and Python's own, which are read-only",
    "changing owners, rights and times of any file",
    "signalling or reading processes outside (where the kernel's Landlock is of version 6 or later)",
)
DOES_NOT_STOP = (
    "the network, and sockets of this machine's services, as Docker's",
    "seeing that other files are there, and which processes, with their command lines",
    "reading and writing what others have in /dev/shm, filling it or the disk",
    "memory that no process has mapped: buffers of sockets, the files of /dev/shm",
    "as root, any number of processes until the guard looks, every 0.05 s",
    "a process that leaves its session, if the rank server is ended first",
    "talking past a rule on traffic, behind a show of the right calls: no bytes are counted here",
)


class Landlocked:
    """The site of one rank server that may reach few files. See `helpers.ranks.site.Site`."""

    def __init__(self, staged: Staged, limits: Limits) -> None:
        self.root = str(staged.folder)
        self.scratch = tempfile.mkdtemp(prefix=f"real-ranks-{os.getpid()}-")
        self.emptied: tuple[str, ...] = (self.scratch,)
        self.idle_s = 0.0
        self.limits = limits
        self.most_output = limits.output_bytes
        self.most_result, self.most_parts = limits.result_bytes, limits.result_parts
        self.first = 0

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        etc = (*SETTINGS, *(f"/etc/{name}" for name in _ETC))
        readable = (*_SYSTEM, *etc, *python_folders(), self.root)
        limits = self.limits.of_a_process()
        limits["NPROC"] += threads_of(os.getuid())  # the kernel counts all that this user has
        prelude = (
            f"import sys; sys.path.insert(0, {self.root!r}); "
            "from helpers.grading.sandbox.inside import confine; "
            "from helpers.ranks.processes import end_with_parent; "
            "end_with_parent(); "  # a server that a rank has stopped never reads that its pipe closes
            f"confine({limits!r}, {readable!r}, {(*_DEVICES, self.scratch)!r}); "
        )
        path = os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"])
        own = {"PATH": path, "HOME": self.scratch, "TMPDIR": self.scratch, "LANG": "C.UTF-8"}
        program = prelude + server_program(self, control, method)
        process = Spawned(program, log, env={**own, **env}, pass_fds=(control,), cwd=self.scratch)
        self.first = process.pid
        return process

    def outside(self, pid: int) -> int:
        return pid

    def starting(self) -> None:
        pass

    def traffic(self, pids: Sequence[int]) -> Traffic | None:
        return None  # the network is this machine's: others use it too

    def environment(self) -> tuple[dict[str, str], list[str]]:
        return {}, []  # ranks behind walls hear nothing of the grader's

    def cwd(self) -> str:
        return self.scratch

    def path(self) -> list[str]:
        shown = (*python_folders(), *_SYSTEM)
        return [self.root, *(folder for folder in sys.path if folder.startswith(shown))]

    def close(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)


def why_not() -> str:
    """Give "" if it works here, else one line that says why it does not."""
    try:
        return "" if landlock.abi() else "this kernel has no Landlock"
    except (OSError, AttributeError) as error:
        return f"Landlock does not work here: {error}"
