"""Connect the kernel to each host: a link to the host's agent, and a site for the rank server there.

    Connection ──socket──> HostLink (a thread) ──socket──> carry (in Dask's loop) ══> worker ══> agent

To a `Connection` and a `World`, the rank server seems to be on this machine: it uses the same messages and
the same descriptors. `HostLink` receives them in its place and connects them with the ranks on the host.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Any

from msgspec import json, msgpack

from helpers.hosts.streams import (
    ANSWER,
    ASK,
    CONTROL,
    COUNT,
    GONE,
    RECORDS,
    Multiplexer,
    Rank,
)
from helpers.hosts.versions import boot
from helpers.ranks.failures import LaunchError
from helpers.ranks.messages import MAX_FDS, Messages
from helpers.ranks.site import Beside
from helpers.trace.log import put

ANSWER_S = 8.0
# Clocks drift by about 50 microseconds in a second, so they are compared again after ten seconds.
_CLOCK_NS = 10 * 10**9


class HostLink(Multiplexer):
    """The kernel's end of the streams to one host, served by its own thread."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.why = "the course's process on that host exited, or its connection was lost"
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        # When the answer that was fetched last arrived.
        self.answered_ns = 0
        # The answer to each question, and when it arrived.
        self._answers: dict[int, queue.SimpleQueue[tuple[bytes, int]]] = {}
        # launch -> the descriptor of the memory for its records
        self._records: dict[int, int] = {}
        self._control: Messages | None = None
        self._log: IO[bytes] | None = None
        self._for_connection: deque[memoryview] = deque()
        self._thread_here = threading.Thread(target=self.serve, name="hosts", daemon=True)
        self._thread_here.start()

    def question(self, what: str, **given: Any) -> int:
        """Ask the agent. Return the number with which to fetch the `answer`."""
        number = next(self._numbers)
        self._answers[number] = queue.SimpleQueue()
        self.send(ASK, body=msgpack.encode({"what": what, "number": number, **given}))
        return number

    def tell(self, what: str, **given: Any) -> None:
        """Send a request to the agent without waiting for the answer."""
        self.send(ASK, body=msgpack.encode({"what": what, "number": 0, **given}))

    def answer(
        self,
        number: int,
        kind: Any = Any,
        deadline_s: float = ANSWER_S,
        meanwhile: Callable[[], None] | None = None,
    ) -> Any:
        """Wait for an answer, and decode it as a `kind`.

        Args:
            number: The number that `question` returned.
            kind: The answer's type.
            deadline_s: Seconds to wait.
            meanwhile: Called repeatedly until the answer has arrived.

        Raises:
            LaunchError: The agent reports a problem.
            TimeoutError: The agent does not answer, or is lost.
        """
        deadline = time.monotonic() + deadline_s
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    found, self.answered_ns = self._answers[number].get(
                        timeout=0.0 if meanwhile else 0.1
                    )
                    break
                if meanwhile is not None:
                    meanwhile()
                if self.closed or time.monotonic() > deadline:
                    raise TimeoutError(self.why if self.closed else "it does not answer")
        finally:
            del self._answers[number]
        problem, answer = msgpack.decode(found, type=tuple[str, kind | None])
        if problem:
            raise LaunchError(problem)
        return answer

    def serve_connection(self, control: socket.socket, log: IO[bytes]) -> None:
        """Act as the rank server at the other end of a socket. log: receives the real one's last output."""
        control.setblocking(False)
        self._log = log
        self._control = Messages(control, MAX_FDS)
        self.tell("begin")
        self.call_soon(self._attend_connection)

    def close(self) -> None:
        """Disconnect from the host. Its agent then ends all that it has started there."""
        if self._owner != os.getpid():
            # this process was forked by a cell: a shutdown would close the kernel's link, too
            return
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self._thread_here.join(5.0)

    def shut(self) -> None:
        super().shut()
        for fd in self._records.values():
            os.close(fd)
        self._records.clear()
        if self._control is not None:
            self._control.close()

    def on_silence(self) -> None:
        self.why = "it has not answered for ten seconds"

    def heard(self, kind: int, launch: int, rank: int, body: bytes) -> None:
        if kind == CONTROL:
            self._tell_connection(body)
        elif kind == ANSWER:
            with contextlib.suppress(KeyError):  # the question has timed out
                self._answers[launch].put((body, time.monotonic_ns()))
        elif kind == RECORDS and (fd := self._records.get(launch)) is not None:
            (start,), (lost,) = COUNT.unpack_from(body), COUNT.unpack_from(body, COUNT.size)
            put(fd, rank, start, lost, body[2 * COUNT.size :])
        elif kind == GONE:
            self.why = "its rank server exited"
            if self._log is not None:
                with contextlib.suppress(OSError, ValueError):
                    self._log.write(body)
                    self._log.flush()
            raise EOFError

    def _tell_connection(self, body: bytes) -> None:
        """Pass on a message of the rank server. A rank's exit is passed on after all its output."""
        values = json.decode(body).get("exit")
        rank = self.ranks.get((values[0], values[1])) if values else None
        line = memoryview(body + b"\n")
        if rank is not None:
            self.after(rank, lambda: self._write_connection(line))
        else:
            self._write_connection(line)

    def _write_connection(self, *lines: memoryview) -> None:
        self._for_connection.extend(lines)
        while self._for_connection and self._control is not None:
            try:
                sent = self._control.sock.send(self._for_connection[0])
            except BlockingIOError:
                break
            if sent == len(self._for_connection[0]):
                self._for_connection.popleft()
            else:
                self._for_connection[0] = self._for_connection[0][sent:]
        self._attend_connection()

    def _attend_connection(self) -> None:
        if self._control is not None:
            mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._for_connection else 0)
            self.watch(self._control.fileno(), mask, self._at_connection)

    def _at_connection(self, events: int) -> None:
        assert self._control is not None
        if events & selectors.EVENT_WRITE:
            self._write_connection()
        if events & selectors.EVENT_READ:
            # EOFError: the kernel no longer needs the host
            for message in self._control.receive(0.0):
                self._obey(message)

    def _obey(self, message: dict[str, Any]) -> None:
        assert self._control is not None
        if message["do"] == "start":
            fds, launch = self._control.fds, message["launch"]
            log = fds.pop(0)
            if self._records.setdefault(launch, log) != log:
                os.close(log)
            for number in message["ranks"]:
                channel, output = socket.socket(fileno=fds.pop(0)), fds.pop(0)
                self.add(Rank(launch, number, channel, output, reads_output=False))
        self.send(CONTROL, body=json.encode(message))
        if message["do"] == "end":
            self.drop(message["launch"])
            if (fd := self._records.pop(message["launch"], None)) is not None:
                os.close(fd)


class _Server:
    """A host's rank server as its `Connection` sees it. It lives as long as the link to the host."""

    pid = 0

    def __init__(self, link: HostLink) -> None:
        self._link = link

    def poll(self) -> int | None:
        return -9 if self._link.closed else None

    def wait(self, timeout: float) -> int:
        self._link._thread_here.join(timeout)
        if not self._link.closed:
            raise subprocess.TimeoutExpired("rank server", timeout)
        return -9

    def kill(self) -> None:
        self._link.close()


class RemoteSite:
    """Site of a rank server on a remote host. See `helpers.ranks.site.Site`."""

    emptied: tuple[str, ...] = ()
    idle_s = 0.0
    most_output, most_parts, most_result = Beside.most_output, Beside.most_parts, Beside.most_result

    def __init__(
        self, name: str, link: HostLink, about: Mapping[str, Any], given: Mapping[str, str]
    ) -> None:
        """Read the agent's description of its host.

        Args:
            about: The agent's answer.
            given: The environment with which this process started.
        """
        self.name = name
        self.link = link
        self.root, self.scratch = str(about["root"]), str(about["scratch"])
        self.address, self.interface = str(about["address"]), str(about["interface"])
        self.gpus, self.cores = int(about["gpus"]), int(about["cores"])
        # How far the host's monotonic clock is ahead of this machine's, and the largest possible error.
        self.clock_ns = self.clock_within_ns = 0
        self._clock_asked: tuple[int, int] | None = None
        self._clock_old_ns = 0
        self._boot = str(about["boot"])
        self._path = [str(each) for each in about["path"]]
        self._given = given

    def ask_clock(self) -> None:
        """Ask the host for its clock, for `read_clock`, unless this was done a moment ago.

        The host reads its clock between question and answer, most likely half-way (Cristian, "Probabilistic
        clock synchronization", 1989).
        """
        same = self._boot and self._boot == boot()  # the same machine, with the same clock
        if not same and self._clock_asked is None and time.monotonic_ns() > self._clock_old_ns:
            self._clock_asked = time.monotonic_ns(), self.link.question("clock")

    def read_clock(self) -> None:
        """Compute the clock's offset from the answer. Raise TimeoutError if there is none."""
        if self._clock_asked is not None:
            (start, number), self._clock_asked = self._clock_asked, None
            theirs, end = self.link.answer(number, int), self.link.answered_ns
            self.clock_ns, self.clock_within_ns = theirs - (start + end) // 2, (end - start) // 2
            self._clock_old_ns = end + _CLOCK_NS

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> _Server:
        self.link.serve_connection(socket.socket(fileno=os.dup(control)), log)
        return _Server(self.link)

    def outside(self, pid: int) -> int:
        return pid

    def environment(self) -> tuple[dict[str, str], list[str]]:
        """Return the variables that cells have set here, and the interface for the ranks' connections.

        All other variables are the host's own, because its folders and devices differ from this machine's.
        """
        now = dict(os.environ)
        changed = {name: value for name, value in now.items() if self._given.get(name) != value}
        own = {"GLOO_SOCKET_IFNAME": self.interface, "NCCL_SOCKET_IFNAME": self.interface}
        return {**changed, **own}, [name for name in self._given if name not in now]

    def cwd(self) -> str:
        return os.getcwd()  # if the host has no such folder, ranks stay where the worker runs

    def path(self) -> list[str]:
        # The learner's own folders may be on a shared file system; packages are the host's own.
        own = [each for each in sys.path if not each.startswith((sys.prefix, sys.base_prefix))]
        return list(dict.fromkeys([*own, *self._path]))

    def close(self) -> None:
        self.link.close()
