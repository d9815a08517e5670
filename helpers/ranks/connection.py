"""The launcher's end of the rank server: start it, talk to it, notice when it has gone."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from helpers.ranks.failures import LaunchError
from helpers.ranks.messages import MAX_FDS, Messages
from helpers.ranks.observed import Times, View, times_of_all, view_here
from helpers.ranks.site import Beside, Site
from helpers.ranks.stop import raise_if_stopped

# Environment variable: "fork" or "spawn"; by default fork on Linux and spawn elsewhere.
START_METHOD = "REAL_RANKS_START"

# A TCPStore looks up the name of each client. Where an answer of the DNS is lost, glibc would wait 5 s for
# it by default, and nothing would move for so long.
RESOLVER = {"RES_OPTIONS": "timeout:1 attempts:1"}
# The server's heap in huge pages from the beginning; `warm` gathers the rest. Ranks' own children do not
# inherit the setting.
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

READY_S = 120.0


class ServerGone(Exception):
    """The rank server has ended although nobody asked it to."""


@dataclass(frozen=True)
class Rendezvous:
    """Where the ranks of one launch find each other, when they are on several hosts.

    address: of the first host. store: the port of the default group's TCPStore, which rank 0 serves. port:
    what ranks find as MASTER_PORT. Both are free when the launch begins, and no other program is given them.
    """

    address: str
    store: int
    port: int


class Servers(Protocol):
    """The rank server that a `World` uses (a `Connection`), or those of several hosts."""

    lock: threading.RLock
    gone: bool
    # How many there are for the ranks.
    cores: int
    # The names of hosts that had gone when these servers were closed.
    lost: Sequence[str]

    def wait_until_ready(self) -> None: ...

    def want(self, names: Iterable[str]) -> None: ...

    def new_launch(self) -> int: ...

    def sites(self, world_size: int) -> Sequence[Site]:
        """Return the site of each rank, rank 0 first. Ranks of one site are neighbours."""

    def clocks(self, world_size: int) -> Sequence[int]:
        """Return, for each rank, how far its monotonic clock is ahead of this process's, in nanoseconds."""

    def view(self, launch: int, pids: Mapping[int, int], meanwhile: Callable[[], None]) -> View:
        """Look at the processes of a launch's ranks, whose ids these are; 0 for one that is not there yet.

        meanwhile: called again and again while other hosts look.
        """

    def times(self, pids: Sequence[int]) -> Mapping[Any, Times]:
        """Return the times of the processes of ranks, see `observed.times_of_all`."""

    def host_names(self, world_size: int) -> tuple[str, ...]:
        """Return the host of each rank; empty if all are on this machine."""

    def gpus(self, world_size: int) -> int | None:
        """Return how many ranks of a world have a GPU of their own; None if all are on this machine."""

    def rendezvous(self, launch: int) -> Rendezvous | None:
        """Return where the ranks of a launch meet; None for a file in their launch's folder."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when there may be `messages`."""

    def start_ranks(self, launch: int, log: int, ends: Mapping[int, tuple[int, int]]) -> None: ...

    def rewind(self, launch: int) -> None:
        """Take note that the records of a launch begin again at the front."""

    def messages(self, launch: int) -> list[tuple[str, list[Any]]]: ...

    def has_word_for(self, launch: int) -> bool: ...

    def end_launch(self, launch: int) -> bool: ...

    def kill(self, pid: int) -> None:
        """End a rank that the server did not end, and all of its group."""

    def dismiss_launch(self, launch: int) -> None: ...


class Connection:
    """One rank server and the socket to it. Used by one thread at a time (`lock`)."""

    def __init__(self, site: Site | None = None) -> None:
        self.lock = threading.RLock()
        self.owner = os.getpid()
        self.site = site or Beside()
        self.pid = 0
        self.cores = os.cpu_count() or 1
        self.lost: Sequence[str] = ()
        # The server's end of the socket has closed.
        self.gone = False
        self.closed = False
        self._ready = False
        self._wanted: set[str] = set()
        self._launches = itertools.count(1)
        self._messages: list[dict[str, Any]] = []
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (for the server's life)
        self._start()
        atexit.register(self.close)

    def _start(self) -> None:
        # A pair without a name: nobody else can connect to it, and its end is the end of either process.
        ours, theirs = socket.socketpair()
        ours.setblocking(True)  # whatever a cell has given to socket.setdefaulttimeout
        theirs.setblocking(True)
        self.control = Messages(ours)
        with theirs:
            self._process = self.site.start(
                theirs.fileno(), self._log, start_method(), rank_settings()
            )
        self.pid = self._process.pid

    def wait_until_ready(self) -> None:
        """Wait for the server's import of torch. Raise LaunchError if it does not come."""
        deadline = time.monotonic() + READY_S
        while not self._ready:
            raise_if_stopped()
            if time.monotonic() > deadline:
                raise LaunchError(f"the rank server was not ready after {READY_S:g} s.")
            try:
                self._read(0.5)
            except ServerGone:
                raise LaunchError(
                    f"the rank server could not start. It said:\n{self.last_words()}"
                ) from None

    def want(self, names: Iterable[str]) -> None:
        """Have the server import modules before it forks the next ranks, unless it has. Do not wait."""
        new = [name for name in names if name not in self._wanted]
        if new:
            self._wanted.update(new)
            self._send({"do": "import", "names": new})

    def preload(self) -> None:
        """Have the server import all that ranks may want: before a long row of launches."""
        self.wait_until_ready()
        self._send({"do": "preload"})
        deadline = time.monotonic() + READY_S
        while {"preloaded": True} not in self._messages:
            if time.monotonic() > deadline:
                raise LaunchError(f"the rank server did not answer for {READY_S:g} s.")
            self._read(0.5)
        self._messages.remove({"preloaded": True})

    def take_over(self) -> None:
        """In a forked child of the owner: speak to the server in its place, for as long as both are there."""
        self.owner = os.getpid()
        self.lock = threading.RLock()

    def last_words(self) -> str:
        """Return the end of what the server printed: errors from its start, normally nothing."""
        with contextlib.suppress(OSError, ValueError):
            self._log.seek(0)
            return self._log.read()[-2000:].decode(errors="replace").strip() or "(nothing)"
        return "(nothing)"

    def new_launch(self) -> int:
        return next(self._launches)

    def fileno(self) -> int:
        return self.control.fileno()

    def sites(self, world_size: int) -> Sequence[Site]:
        return [self.site] * world_size

    def clocks(self, world_size: int) -> Sequence[int]:
        return [0] * world_size

    def view(self, launch: int, pids: Mapping[int, int], meanwhile: Callable[[], None]) -> View:
        return view_here(pids, self.pid)

    def times(self, pids: Sequence[int]) -> Mapping[Any, Times]:
        return times_of_all(pids)

    def host_names(self, world_size: int) -> tuple[str, ...]:
        return ()

    def gpus(self, world_size: int) -> int | None:
        return None

    def rendezvous(self, launch: int) -> Rendezvous | None:
        return None

    def start_ranks(self, launch: int, log: int, ends: Mapping[int, tuple[int, int]]) -> None:
        """Ask for ranks, each with its pair of descriptors (channel, output).

        log: the memory for their records. The server makes a folder for the files of this launch.
        """
        # The kernel limits how many descriptors one message may carry, so large worlds take several.
        step = (MAX_FDS - 1) // 2
        folder, ranks = folder_of(self.site, launch), list(ends)
        for first in range(0, len(ranks), step):
            some = ranks[first : first + step]
            message = {"do": "start", "launch": launch, "folder": folder, "ranks": some}
            self._send(message, [log, *(fd for rank in some for fd in ends[rank])])

    def rewind(self, launch: int) -> None:
        pass  # the memory is the ranks' own

    def end_launch(self, launch: int, deadline_s: float = 5.0) -> bool:
        """End all ranks of a launch; tell whether the server confirmed it in time."""
        return self.ask_to_end(launch) and self.has_ended(launch, deadline_s)

    def ask_to_end(self, launch: int) -> bool:
        """Have the server end all ranks of a launch; tell whether it can hear that."""
        try:
            self._send({"do": "end", "launch": launch})
        except ServerGone:
            return False
        return True

    def has_ended(self, launch: int, deadline_s: float) -> bool:
        """Wait for the server's word that the ranks of a launch have ended."""
        try:
            deadline = time.monotonic() + deadline_s
            while time.monotonic() < deadline:
                self._read(0.2)
                for message in self._messages:
                    if message.get("ended") == launch:
                        self._messages.remove(message)
                        return True
        except ServerGone:
            pass
        return False

    def kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def dismiss_launch(self, launch: int) -> None:
        """Have the ranks of a launch that ended well go in their own time.

        Taking a process down costs as much as forking it; nobody need wait for that. The server does
        it before it obeys anything else.
        """
        self._send({"do": "end", "launch": launch, "quietly": True})

    def messages(self, launch: int) -> list[tuple[str, list[Any]]]:
        """Return what the server has said about one launch since the last call, without waiting.

        Each is a word ("started", "refused", "exit") and its values, the rank first.
        """
        self._read(0.0)
        mine, others = [], []
        for message in self._messages:
            if _launch_of(message) == launch:
                ((word, values),) = message.items()
                if word == "started":
                    values[2] = self.site.outside(values[2])
                mine.append((word, values[1:]))
            else:
                others.append(message)
        self._messages = others
        return mine

    def has_word_for(self, launch: int) -> bool:
        return any(_launch_of(message) == launch for message in self._messages)

    def has_retired(self) -> bool:
        """Tell whether the server has left by itself, because nobody needed it."""
        return self.owner == os.getpid() and self._process.poll() == 0

    def alive(self) -> bool:
        here = self.owner == os.getpid() and self._process.poll() is None
        return here and not self.control.hung_up()

    def close(self) -> None:
        """End the server and its ranks, and remove what they left on disk."""
        atexit.unregister(self.close)
        self.closed = True
        with contextlib.suppress(OSError):
            self.control.close()
        if self.owner != os.getpid():
            return
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            # The kernel may take long to give its memory back. Nobody can do more than kill it, and what
            # remains to be closed does not depend on it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
        self._log.close()
        self.site.close()

    def _send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        try:
            self.control.send(message, fds)
        except OSError:
            self.gone = True
            raise ServerGone from None

    def _read(self, wait_s: float) -> None:
        try:
            messages = self.control.receive(wait_s)
        except (OSError, EOFError):
            self.gone = True
            raise ServerGone from None
        for message in messages:
            if "ready" in message:
                self._ready = True
            else:
                self._messages.append(message)


def folder_of(site: Site, launch: int) -> str:
    """Return the folder for the files of one launch, as the ranks at a site see it."""
    return f"{site.scratch}/world-{launch}"


def rank_settings() -> dict[str, str]:
    """Return the environment variables that a rank server needs to have from its start."""
    # One thread each: ranks share the cores, and fork copies only the thread that calls it.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {**threads, **HUGE_PAGES, "GLOO_SOCKET_IFNAME": loopback, **RESOLVER}


def _launch_of(message: dict[str, Any]) -> int | None:
    """Return the launch that a message of the server speaks of (None for `ended`, read elsewhere)."""
    (values,) = message.values()
    return values[0] if isinstance(values, list) else None


def start_method() -> str:
    """Tell how ranks start here: "fork", or "spawn" where fork is unsafe or missing."""
    chosen = os.environ.get(START_METHOD, "fork" if sys.platform == "linux" else "spawn")
    if chosen not in {"fork", "spawn"}:
        raise LaunchError(f"{START_METHOD}={chosen!r}: it must be 'fork' or 'spawn'.")
    return chosen
