"""The outer half of the template: start it behind bubblewrap, have it fork rank servers, end it.

    grader --Template.fork--> | bwrap: a read-only system, no network                    |
                              |   template_inside --fork--> | own network, own /tmp |    |
                              |                             |   rank server -> ranks|    |

`levels.Plan` holds one for each grading process.
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

from helpers.grading.sandbox.bubblewrap import ROOT, bwrap_words, environment
from helpers.grading.sandbox.staged import Staged
from helpers.ranks.connection import rank_settings
from helpers.ranks.failures import LaunchError
from helpers.ranks.messages import Messages
from helpers.ranks.processes import children_of, end, inner_pid

_ANSWER_S = 120.0
_LOOKS = 50


class Template:
    """The process behind bubblewrap that forks rank servers (`template_inside`), from outside.

    Used by one thread. Ends with the thread that made it, or by `close`.
    """

    def __init__(self, staged: Staged) -> None:
        self.owner = os.getpid()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (for the process's life)
        ours, theirs = socket.socketpair()
        ours.settimeout(_ANSWER_S)
        self._control = Messages(ours)
        program = (
            f"import sys; sys.path.insert(0, {ROOT!r}); "
            f"from helpers.grading.sandbox.template_inside import main; main({theirs.fileno()})"
        )
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
        # the socket tells sooner than bwrap, which waits for what is within, and ends after it
        return here and self._process.poll() is None and not self._control.hung_up()

    def fork(self, asked: Mapping[str, Any], control: int, log: int) -> int:
        """Have a rank server made in namespaces of its own; give its process id out here.

        control: the server's end of its control socket. log: takes what it prints. Raise LaunchError.
        """
        keeper = self._asked(asked, [control, log], "keeper")
        deadline = time.monotonic() + _ANSWER_S
        missed = 0
        while missed < _LOOKS and time.monotonic() < deadline:
            found = [child for child in children_of(self._first) if inner_pid(child) == keeper]
            for first in (each for child in found for each in children_of(child)):
                return first
            missed += not found  # the kernel's list may have gaps, but not again and again
            time.sleep(0.001)
        raise LaunchError(f"the rank server did not start: {self._words()}")

    def preload(self) -> None:
        """Have it import what the later notebooks need, once for all servers to come."""
        if not self._preloaded:
            self._asked({"preload": True}, [], "preloaded")
            self._preloaded = True

    def close(self) -> None:
        """End it, and all servers that it has made."""
        self._control.close()
        if self.owner == os.getpid():
            self._process.kill()  # bwrap, and with it all that is within
            with suppress(subprocess.TimeoutExpired):  # its memory may take the kernel long
                self._process.wait(5.0)
        self._log.close()

    def _asked(self, message: Mapping[str, Any], fds: list[int], word: str) -> int:
        """Ask, and wait for the answer of that name. Raise LaunchError."""
        try:
            self._control.send(message, fds)
            while True:
                for said in self._control.receive():
                    if word in said:
                        return int(said[word])
        except (OSError, EOFError) as error:
            words = self._words()
            self.close()  # a late answer would be taken for that to the next question
            raise LaunchError(f"no rank server could be made ({error}): {words}") from None

    def _words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-500:].decode(errors="replace").strip() or "it said nothing"


class Forked:
    """A rank server that a template made: nobody's child out here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
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
        end(self.pid)

    def __del__(self) -> None:
        if self._handle >= 0:  # nobody has seen its end: it takes longer to die than anybody waits
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
    """Read what bwrap tells of itself: the process id of the program, out here."""
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
