"""The place of a rank server: next to its launcher, or in a sandbox created by a grader.

A `Connection` starts the server through a `Site`. Ranks see the same system as their server.
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
from helpers.ranks.processes import PR_SET_NAME, end_process_tree, prctl


class ServerProcess(Protocol):
    """The process of a rank server, for its launcher."""

    pid: int

    def poll(self) -> int | None:
        """Return None while the process is running, and its exit code afterwards."""

    def wait(self, timeout: float) -> int:
        """Wait until the process exits. Raise subprocess.TimeoutExpired after `timeout` seconds."""

    def kill(self) -> None:
        """Kill the process, and everything in its session or sandbox."""


class SpawnedServer(subprocess.Popen[bytes]):
    """A rank server started as a program. It is the leader of a new session."""

    def __init__(self, program: str, log: IO[bytes], **options: Any) -> None:
        # A Stop goes to the kernel's whole process group. It would end the new process, which has no separate
        # session yet and starts with Python's default handlers. So SIGINT is blocked when the process starts,
        # and unblocked after the process has set a handler that ignores it (`_Server.prepare`).
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            # With -P, a timeit.py or json.py in the learner's folder does not replace Python's module.
            super().__init__(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C or Stop must reach only the kernel, not the server.
                **options,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def kill(self) -> None:
        end_process_tree(self.pid)


class ForkedServer:
    """A rank server forked by its launcher. The server is the leader of a new session."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # Code in a cell has already waited for this process, so its exit code is lost.
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
        end_process_tree(self.pid)


def server_program(site: Site, control: int, method: str) -> str:
    """Return the source of a program that runs a rank server."""
    return (
        f"import sys; sys.path.insert(0, {site.root!r}); from helpers.ranks.server import main; "
        f"main({control}, {method!r}, {site.scratch!r}, {site.emptied!r}, {site.idle_s!r})"
    )


class RankSite(Protocol):
    """The surroundings of ranks.

    Attributes:
        root: The folder that contains `helpers`, as the server's path.
        scratch: The folder for the files of its worlds, as the server's path.
        most_output: Maximum number of bytes that a rank may print before it is killed; 0 for no limit. A
            separate limit applies to the stored part.
        most_result: The limit for one returned value, in bytes.
        most_parts: Maximum number of commas and brackets in the value's text; 0 for no limit.
    """

    root: str
    scratch: str
    most_output: int
    most_result: int
    most_parts: int

    def environment(self) -> tuple[dict[str, str], list[str]]:
        """Return the variables to set for ranks, in addition to their server's, and the names to unset.

        A process started by the notebook now would inherit the changes that cells have made to os.environ,
        but the server was started earlier.
        """

    def cwd(self) -> str:
        """Return the folder in which ranks start."""

    def path(self) -> list[str]:
        """Return the ranks' `sys.path`."""


class Site(RankSite, Protocol):
    """A place in which this process can start a rank server.

    Attributes:
        emptied: Folders used only by ranks. They are emptied when a launch has ended.
        idle_s: The server exits after this many seconds without a request; 0 means never.
    """

    emptied: tuple[str, ...]
    idle_s: float

    def start(
        self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]
    ) -> ServerProcess:
        """Start the server.

        Args:
            control: The server's end of the control socket.
            log: The file for the server's output.
            method: "fork" or "spawn".
            env: Variables that the server needs in addition to the place's environment.
        """

    def host_pid(self, pid: int) -> int:
        """Return the launcher's id of a process whose id is `pid` for the server; 0 if there is none."""

    def close(self) -> None:
        """Remove the place's files, after the server has exited."""


class LocalSite:
    """A place next to the launcher, sharing its files, environment and process ids."""

    emptied: tuple[str, ...] = ()
    idle_s: float = 300.0
    most_output = 0
    most_parts = 0
    most_result = wire.MAX_BYTES[wire.RESULT]

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        """Prepare a place. variables: the server's variables, in addition to this process's environment."""
        self.root = str(Path(__file__).parents[2])
        self.scratch = tempfile.mkdtemp(prefix=f"real-ranks-{os.getpid()}-")
        self._variables = dict(variables or {})
        self._server_environment: dict[str, str] = {}

    def start(
        self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]
    ) -> ServerProcess:
        program = server_program(self, control, method)
        self._server_environment = {**os.environ, **self._variables}
        return SpawnedServer(
            program, log, env={**self._server_environment, **env}, pass_fds=(control,)
        )

    def host_pid(self, pid: int) -> int:
        return pid

    def environment(self) -> tuple[dict[str, str], list[str]]:
        current = dict(os.environ)
        changed = {k: v for k, v in current.items() if self._server_environment.get(k) != v}
        return changed, [name for name in self._server_environment if name not in current]

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


class ForkingSite(LocalSite):
    """A place next to the launcher, from which the server is forked, so that both share torch's memory.

    The launcher must have only one thread, and must have called `preload.import_for_sharing`. The server
    never exits when idle, because it holds little private memory, and it could not be forked again once the
    kernel has threads.
    """

    idle_s = 0.0

    def start(
        self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]
    ) -> ServerProcess:
        self._server_environment = dict(os.environ)
        pid = os.fork()
        if pid == 0:
            try:
                self._serve(control, log.fileno(), method, env)
            except BaseException:
                traceback.print_exc()  # into the log, which the launcher shows
                os._exit(1)
            finally:
                os._exit(0)
        return ForkedServer(pid)

    def _serve(self, control: int, log: int, method: str, env: Mapping[str, str]) -> None:
        os.setsid()  # Ctrl-C or Stop must reach only the kernel, not the server.
        for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
            os.dup2(source, target)
        # A copy of the launcher's end would keep the socket open after the launcher has exited.
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd != control:
                with contextlib.suppress(OSError):  # the descriptor used for listing the others
                    os.close(fd)
        os.environ.update(env)
        del sys.argv[1:]  # Otherwise argparse in a rank would read the kernel's arguments.
        prctl(PR_SET_NAME, b"rank server")  # Otherwise lists of processes show the kernel's name.
        importlib.import_module("helpers.ranks.server").main(
            control, method, self.scratch, self.emptied, self.idle_s
        )
