"""Where a rank server runs: next to its launcher, or in a sandbox that a grader puts up.

`Connection` has a `Site` start the server; ranks see what the server sees.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from helpers.ranks import wire
from helpers.ranks.failures import LaunchError
from helpers.ranks.processes import PR_SET_NAME, end_family, prctl


class Process(Protocol):
    """A rank server as its launcher sees it."""

    pid: int

    def poll(self) -> int | None:
        """Return None while it is there."""

    def wait(self, timeout: float) -> int:
        """Wait for its end. Raise subprocess.TimeoutExpired if that does not come in time (seconds)."""

    def kill(self) -> None:
        """End it, and all that is in its session or place, without asking."""


class Spawned(subprocess.Popen[bytes]):
    """A rank server that was started as a program: the first process of its session."""

    def __init__(self, program: str, log: IO[bytes], **options: Any) -> None:
        # A Stop goes to the kernel's whole process group. Until the new process has a session of its own
        # it would be ended by it, as Python sets its handlers back before: so it begins with SIGINT
        # blocked, and lets it through once it ignores it (`Server.warm_up`).
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            # -P: a timeit.py or json.py in the learner's folder must not be taken for Python's own
            super().__init__(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C or Stop for the kernel is not for the server
                **options,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def kill(self) -> None:
        end_family(self.pid)


class Forked:
    """A rank server that its launcher forked: the first process of its session."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # a cell has waited for it: nobody can say how it ended
                self._code = -1
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("rank server", timeout)
            time.sleep(0.005)
        return code

    def kill(self) -> None:
        end_family(self.pid)


def server_program(site: Site, control: int, method: str) -> str:
    """Return the text of a program that is a rank server."""
    return (
        f"import sys; sys.path.insert(0, {site.root!r}); from helpers.ranks.server import main; "
        f"main({control}, {method!r}, {site.scratch!r}, {site.emptied!r}, {site.idle_s!r})"
    )


class Site(Protocol):
    """A place for one rank server.

    root: the folder in which the server finds `helpers`. scratch: where its worlds keep their files.
    Both are named as the server sees them. most_output: how many bytes a rank may print before it is
    ended, 0 for any number (what is kept of them is another matter). most_result: bytes of one value.
    most_parts: commas and brackets of its text, 0 for any number.
    emptied: folders that nobody but the ranks uses: emptied when a launch has ended. idle_s: the server
    exits after that many seconds without a request; 0: it stays.
    """

    root: str
    scratch: str
    most_output: int
    most_result: int
    most_parts: int
    emptied: tuple[str, ...]
    idle_s: float

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        """Start the server with this end of its control socket; `log` takes what it prints.

        method: "fork" or "spawn". env: what it needs besides the place's own environment.
        """

    def outside(self, pid: int) -> int:
        """Return the process id out here of what the server calls `pid`; 0 if there is none."""

    def environment(self) -> tuple[dict[str, str], list[str]]:
        """Return what of the launcher's environment ranks must have beyond their server's, and must not.

        os.environ as a cell leaves it is what processes that the notebook starts now would inherit; the
        server was started before that.
        """

    def cwd(self) -> str:
        """Return the folder in which ranks start."""

    def path(self) -> list[str]:
        """Return the ranks' `sys.path`."""

    def close(self) -> None:
        """Remove what the place has left on disk, once the server has ended."""


class Beside:
    """Next to the launcher: the same files, the same environment, the same process ids."""

    emptied: tuple[str, ...] = ()
    idle_s: float = 300.0
    most_output = 0
    most_parts = 0
    most_result = wire.MAX_BYTES[wire.RESULT]

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        """Prepare a place. variables: of the server's environment, beyond this process's own."""
        self.root = str(Path(__file__).parents[2])
        self.scratch = tempfile.mkdtemp(prefix=f"real-ranks-{os.getpid()}-")
        self._variables = dict(variables or {})
        self._given: dict[str, str] = {}

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        program = server_program(self, control, method)
        self._given = {**os.environ, **self._variables}
        return Spawned(program, log, env={**self._given, **env}, pass_fds=(control,))

    def outside(self, pid: int) -> int:
        return pid

    def environment(self) -> tuple[dict[str, str], list[str]]:
        now = dict(os.environ)
        changed = {k: v for k, v in now.items() if self._given.get(k) != v}
        return changed, [name for name in self._given if name not in now]

    def cwd(self) -> str:
        try:
            return os.getcwd()
        except FileNotFoundError:
            raise LaunchError(
                "the working directory of this process was removed, so ranks have no folder to start "
                "in. Change to an existing folder, for example with os.chdir(os.path.expanduser('~'))."
            ) from None

    def path(self) -> list[str]:
        return list(sys.path)

    def close(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)


class Shared(Beside):
    """Next to the launcher and forked from it: the memory of torch is shared.

    The launcher must have one thread, and have called `warm.import_to_share`. The server stays: it holds
    little memory of its own, and another one could not be forked later, when the kernel has threads.
    """

    idle_s = 0.0

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        self._given = dict(os.environ)
        pid = os.fork()
        if pid == 0:
            try:
                self._serve(control, log.fileno(), method, env)
            except BaseException:
                traceback.print_exc()  # into the log, which the launcher shows
                os._exit(1)
            finally:
                os._exit(0)
        return Forked(pid)

    def _serve(self, control: int, log: int, method: str, env: Mapping[str, str]) -> None:
        os.setsid()  # a Ctrl-C or Stop for the kernel is not for the server
        for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(source, target)
        # A copy of the launcher's end of the socket would keep it open when the launcher has gone.
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd != control:
                with contextlib.suppress(OSError):  # the one that listed the others
                    os.close(fd)
        os.environ.update(env)
        del sys.argv[1:]  # the kernel's, which a rank's argparse would take for its own
        prctl(PR_SET_NAME, b"rank server")  # else it has the kernel's name in lists of processes
        importlib.import_module("helpers.ranks.server").main(
            control, method, self.scratch, self.emptied, self.idle_s
        )
