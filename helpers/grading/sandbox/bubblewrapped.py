"""Run each rank server in new namespaces behind bubblewrap: the strongest sandbox.

    grader --Template.fork--> | bwrap: a read-only system, no network                    |
                              |   template_inside --fork--> | own network, own /tmp |    |
                              |                             |   rank server -> ranks|    |

`levels` chooses this sandbox if `bwrap` is installed and may create namespaces, and keeps one `Template` for
each grading process.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from helpers.grading.sandbox.bubblewrap import (
    LIBRARIES,
    ROOT,
    bwrap_words,
    environment,
    python_folders,
)
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import StagedFiles
from helpers.ranks.connection import rank_settings
from helpers.ranks.failures import LaunchError
from helpers.ranks.json_messages import Messages
from helpers.ranks.placement import ServerProcess
from helpers.ranks.processes import children_of, kill_process, namespace_pid

# Timeout in seconds for a template's answer, including its first import of torch on a busy machine.
_ANSWER_S = 120.0
SCRATCH = "/tmp/worlds"
# systemd reserves this range for "dynamic" users, so no files belong to these ids.
FIRST_USER = 61_184

# Number of times to read the kernel's list of children, which has gaps if a sibling exits meanwhile.
_CHILD_POLLS = 5

STOPS = (
    "reading or writing any files except those of the system and of Python, which are read-only",
    "using the network, except for a separate loopback interface",
    "seeing or signalling processes outside the sandbox, or reading their memory",
    "leaving a process behind",
)
DOES_NOT_STOP = (
    "an attack on the kernel itself",
    "smuggling data past a traffic rule while making the expected calls",
    "seeing the names that the visible folders have on this machine (/proc/self/mountinfo)",
    "signals between sandboxes running at the same time, using locks on files that all of them can "
    "read",
)


class BubblewrapSite:
    """Site of one rank server in new namespaces. See `helpers.ranks.placement.Site`.

    slot: a number not used by any other running grader. If root grades, each slot has a separate user id.
    """

    root = ROOT
    scratch = SCRATCH
    emptied: tuple[str, ...] = ("/tmp", "/dev/shm")
    idle_s: float = 0.0

    def __init__(self, template: Template, limits: Limits, slot: int = 0) -> None:
        self.template, self.limits, self.slot = template, limits, slot
        self.most_output = limits.output_bytes
        self.most_result, self.most_parts = limits.result_bytes, limits.result_parts
        self.first = 0
        """The process id, as seen from outside the sandbox, of the first process inside."""

    @property
    def lost(self) -> bool:
        """Whether the template has ended together with all its servers, which no answer can cause."""
        return not self.template.alive

    def start(
        self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]
    ) -> ServerProcess:
        asked = {
            "limits": self.limits.rlimits(),
            "disk_bytes": self.limits.disk_bytes,
            "user": 0 if os.geteuid() else FIRST_USER + self.slot,
            "folder": SCRATCH,
            "emptied": self.emptied,
            # A virtual environment may be below /tmp, which the sandbox replaces with a new folder.
            "kept": [path for path in python_folders() if path.startswith(("/tmp/", "/dev/shm/"))],
        }
        self.first = self.template.fork(asked, control, log.fileno())
        return ForkedProcess(self.first)

    def host_pid(self, pid: int) -> int:
        for _ in range(_CHILD_POLLS):
            for child in children_of(self.first):
                if namespace_pid(child) == pid:
                    return child
        return 0

    def environment(self) -> tuple[dict[str, str], list[str]]:
        return {}, []  # ranks in a sandbox get no variables of the grader

    def cwd(self) -> str:
        return "/tmp"

    def path(self) -> list[str]:
        shown = (*python_folders(), *LIBRARIES)
        return [ROOT, *(folder for folder in sys.path if folder.startswith(shown))]

    def close(self) -> None:
        kill_process(self.first)  # when the first process ends, so do all other processes inside


class Template:
    """The outside end of the process behind bubblewrap that forks rank servers (`template_inside`).

    Only one thread may use it. The process ends when this thread exits or `close` is called.
    """

    def __init__(self, staged: StagedFiles) -> None:
        self.owner = os.getpid()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (for the process's life)
        ours, theirs = socket.socketpair()
        ours.settimeout(_ANSWER_S)
        self._control = Messages(ours)
        program = (
            f"import sys; sys.path.insert(0, {ROOT!r}); "
            f"from helpers.grading.sandbox.template_inside import main; main({theirs.fileno()})"
        )
        # bwrap reports the started process on this pipe; the process table would allow only a guess.
        info, write = os.pipe()
        with theirs:
            self._process = subprocess.Popen(
                [*bwrap_words(staged, write), sys.executable, "-P", "-c", program],
                pass_fds=(theirs.fileno(), write),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
                env={**environment(), **rank_settings()},
            )
        os.close(write)
        self._first = _first_process(info)
        self._preloaded = False

    @property
    def alive(self) -> bool:
        here = self.owner == os.getpid() and self._control.fileno() >= 0
        # the socket closes before bwrap exits, because bwrap waits for the processes inside
        return here and self._process.poll() is None and not self._control.peer_has_closed()

    def fork(self, request: Mapping[str, Any], control: int, log: int) -> int:
        """Fork a rank server in new namespaces. Return its process id outside.

        Args:
            control: The server's end of its control socket.
            log: A descriptor to which the server's output is written.

        Raises:
            LaunchError: The server did not start.
        """
        keeper = self._request(request, [control, log], "keeper")
        deadline = time.monotonic() + _ANSWER_S
        missed = 0
        while missed < 10 * _CHILD_POLLS and time.monotonic() < deadline:
            found = [child for child in children_of(self._first) if namespace_pid(child) == keeper]
            for first in (each for child in found for each in children_of(child)):
                return first
            missed += not found
            time.sleep(0.001)
        raise LaunchError(f"the rank server did not start: {self._words()}")

    def preload(self) -> None:
        """Import the later notebooks' modules, once for all future servers."""
        if not self._preloaded:
            self._request({"preload": True}, [], "preloaded")
            self._preloaded = True

    def close(self) -> None:
        """End the template and all its servers."""
        self._control.close()
        if self.owner == os.getpid():
            self._process.kill()  # kills bwrap and all processes inside
            with suppress(subprocess.TimeoutExpired):  # the kernel may take long to free its memory
                self._process.wait(5.0)
        self._log.close()

    def _request(self, message: Mapping[str, Any], fds: list[int], reply_key: str) -> int:
        """Send a message and wait for the answer called `reply_key`. Raise LaunchError."""
        try:
            self._control.send(message, fds)
            while True:
                for said in self._control.receive():
                    if reply_key in said:
                        return int(said[reply_key])
        except (OSError, EOFError) as error:
            words = self._words()
            self.close()  # a late answer would be mistaken for the answer to the next message
            raise LaunchError(f"no rank server could be made ({error}): {words}") from None

    def _words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-500:].decode(errors="replace").strip() or "it said nothing"


class ForkedProcess:
    """A rank server forked by a template. It is not a child of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # A pidfd refers to this process even after its number is reused, and a process that is not the
        # parent can poll it.
        self._handle = -1
        with suppress(ProcessLookupError):
            self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return 0 if self._ended(0.0) else None

    def wait(self, timeout: float) -> int:
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired("rank server", timeout)
        return 0

    def kill(self) -> None:
        kill_process(self.pid)

    def __del__(self) -> None:
        if self._handle >= 0:  # its exit was never observed, because all waits were too short
            os.close(self._handle)

    def _ended(self, within_s: float) -> bool:
        if self._handle < 0:
            return True
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        if not poll.poll(within_s * 1000):
            return False
        os.close(self._handle)
        self._handle = -1
        return True


def _first_process(info: int) -> int:
    """Return the process id, outside the sandbox, of the program reported by bwrap, or 0 if there is none."""
    said = b""
    with open(info, "rb", buffering=0) as pipe:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while not said.rstrip().endswith(b"}") and poll.poll(_ANSWER_S * 1000):
            if not (chunk := pipe.read(4096)):
                break
            said += chunk
    with suppress(ValueError, KeyError, TypeError):
        return int(json.loads(said)["child-pid"])
    return 0
