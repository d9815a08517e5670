"""The launcher's connection to the rank server: start the server, exchange messages, and notice its exit."""

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
from helpers.ranks.json_messages import MAX_FDS, Messages
from helpers.ranks.placement import LocalSite, RankSite, Site
from helpers.ranks.process_snapshot import Times, WorldSnapshot, local_snapshot, process_times
from helpers.ranks.stop import raise_if_stopped

# Environment variable: "fork" or "spawn". The default is fork on Linux and spawn elsewhere.
START_METHOD = "REAL_RANKS_START"

# A TCPStore looks up the name of each client. If a DNS answer is lost, glibc waits 5 s for it by default,
# which blocks everything.
RESOLVER = {"RES_OPTIONS": "timeout:1 attempts:1"}
# Put the server's heap in huge pages from the beginning; `preload` collects the rest. Child processes of
# ranks do not inherit the setting.
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

READY_TIMEOUT_S = 120.0
PollCallback = Callable[[], None]


class ServerExited(Exception):
    """The rank server exited without being asked to."""


@dataclass(frozen=True)
class Rendezvous:
    """The rendezvous of one launch's ranks on several hosts.

    address: the first host's address. store: the port of the default group's TCPStore, which rank 0 serves.
    port: the value of MASTER_PORT for ranks. Both ports are free when the launch begins, and are reserved
    for it.
    """

    address: str
    store: int
    port: int


class Servers(Protocol):
    """The rank server that a `World` uses (a `Connection`), or the rank servers of several hosts."""

    lock: threading.RLock
    has_exited: bool
    # Number of cores that the ranks may use.
    cores: int
    # Names of the hosts that had been lost by the time these servers were closed.
    lost_hosts: Sequence[str]

    def wait_until_ready(self) -> None: ...

    def request_imports(self, names: Iterable[str]) -> None: ...

    def new_launch(self) -> int: ...

    def sites(self, world_size: int) -> Sequence[RankSite]:
        """Return the site of each rank, rank 0 first. Ranks at the same site are consecutive."""

    def clocks(self, world_size: int) -> Sequence[int]:
        """Return each rank's clock offset: its monotonic clock minus this process's, in nanoseconds."""

    def inspect_ranks(
        self, launch: int, pids: Mapping[int, int], threads_only: bool, poll: PollCallback
    ) -> WorldSnapshot:
        """Look at the processes of a launch's ranks.

        Args:
            launch: The number of the launch.
            pids: The process id of each rank; 0 for a rank that has not started yet.
            threads_only: Whether only the ranks' threads are needed, which takes less time.
            poll: A function called repeatedly while other hosts inspect their ranks.
        """

    def times(self, pids: Sequence[int]) -> Mapping[Any, Times]:
        """Return the times of the ranks' processes; see `process_snapshot.process_times`."""

    def host_names(self, world_size: int) -> tuple[str, ...]:
        """Return the host of each rank; empty if all are on this machine."""

    def gpus(self, world_size: int) -> int | None:
        """Return the number of ranks that can each have a GPU; None if all are on this machine."""

    def rendezvous(self, launch: int) -> Rendezvous | None:
        """Return the ranks' rendezvous; None if they meet in a file in their launch's folder."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when there may be `messages`."""

    def start_ranks(self, launch: int, log: int, ends: Mapping[int, tuple[int, int]]) -> None: ...

    def rewind_logs(self, launch: int) -> None:
        """Start reading a launch's records from the beginning, because the ranks overwrite them."""

    def messages(self, launch: int) -> list[tuple[str, list[Any]]]: ...

    def has_messages_for(self, launch: int) -> bool: ...

    def end_launch(self, launch: int) -> bool: ...

    def kill(self, pid: int) -> None:
        """Kill a rank that the server did not end, and its whole process group."""

    def release_launch(self, launch: int) -> None: ...


class Connection:
    """One rank server and the socket to it. Only one thread may use it at a time (`lock`)."""

    def __init__(self, site: Site | None = None) -> None:
        self.lock = threading.RLock()
        self.owner = os.getpid()
        self.site = site or LocalSite()
        self.pid = 0
        self.cores = os.cpu_count() or 1
        self.lost_hosts: Sequence[str] = ()
        # Whether the server's end of the socket has closed.
        self.has_exited = False
        self.closed = False
        self._ready = False
        self._wanted: set[str] = set()
        self._launches = itertools.count(1)
        self._messages: list[dict[str, Any]] = []
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (for the server's life)
        self._start()
        atexit.register(self.close)

    def _start(self) -> None:
        # A socket pair has no name, so no other process can connect. Each side notices when the other exits.
        own_end, server_end = socket.socketpair()
        own_end.setblocking(True)  # Block even if a cell has called socket.setdefaulttimeout.
        server_end.setblocking(True)
        self.control = Messages(own_end)
        with server_end:
            self._process = self.site.start(
                server_end.fileno(), self._log, start_method(), rank_settings()
            )
        self.pid = self._process.pid

    def wait_until_ready(self) -> None:
        """Wait until the server has imported torch. Raise LaunchError if it takes too long."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._ready:
            raise_if_stopped()
            if time.monotonic() > deadline:
                raise LaunchError(f"the rank server was not ready after {READY_TIMEOUT_S:g} s.")
            try:
                self._read(0.5)
            except ServerExited:
                raise LaunchError(
                    f"the rank server could not start. It said:\n{self.output_tail()}"
                ) from None

    def request_imports(self, names: Iterable[str]) -> None:
        """Ask the server to import modules before it forks the next ranks. Does not wait."""
        new = [name for name in names if name not in self._wanted]
        if new:
            self._wanted.update(new)
            self._send({"do": "import", "names": new})

    def preload(self) -> None:
        """Before many launches, make the server import all modules that ranks may need, and wait for it."""
        self.wait_until_ready()
        self._send({"do": "preload"})
        deadline = time.monotonic() + READY_TIMEOUT_S
        while {"preloaded": True} not in self._messages:
            if time.monotonic() > deadline:
                raise LaunchError(f"the rank server did not answer for {READY_TIMEOUT_S:g} s.")
            self._read(0.5)
        self._messages.remove({"preloaded": True})

    def use_from_fork(self) -> None:
        """Use the server from a forked child of the owner. The owner must not use it meanwhile."""
        self.owner = os.getpid()
        self.lock = threading.RLock()

    def output_tail(self) -> str:
        """Return the end of the server's output: errors during its start, normally nothing."""
        with contextlib.suppress(OSError, ValueError):
            self._log.seek(0)
            return self._log.read()[-2000:].decode(errors="replace").strip() or "(nothing)"
        return "(nothing)"

    def new_launch(self) -> int:
        return next(self._launches)

    def fileno(self) -> int:
        return self.control.fileno()

    def sites(self, world_size: int) -> Sequence[RankSite]:
        return [self.site] * world_size

    def clocks(self, world_size: int) -> Sequence[int]:
        return [0] * world_size

    def inspect_ranks(
        self, launch: int, pids: Mapping[int, int], threads_only: bool, poll: PollCallback
    ) -> WorldSnapshot:
        return local_snapshot(pids, self.pid)

    def times(self, pids: Sequence[int]) -> Mapping[Any, Times]:
        return process_times(pids)

    def host_names(self, world_size: int) -> tuple[str, ...]:
        return ()

    def gpus(self, world_size: int) -> int | None:
        return None

    def rendezvous(self, launch: int) -> Rendezvous | None:
        return None

    def start_ranks(self, launch: int, log: int, ends: Mapping[int, tuple[int, int]]) -> None:
        """Ask the server to start ranks, each with its pair of descriptors (channel, output).

        log: the descriptor of the memory for the ranks' records. The server creates a folder for the launch's
        files.
        """
        # The kernel limits how many descriptors one message may carry, so large worlds need several.
        batch_size = (MAX_FDS - 1) // 2
        folder, ranks = folder_of(self.site, launch), list(ends)
        for first in range(0, len(ranks), batch_size):
            batch = ranks[first : first + batch_size]
            message = {"do": "start", "launch": launch, "folder": folder, "ranks": batch}
            self._send(message, [log, *(fd for rank in batch for fd in ends[rank])])

    def rewind_logs(self, launch: int) -> None:
        pass  # The ranks write into this process's memory, so nothing was copied.

    def end_launch(self, launch: int, deadline_s: float = 5.0) -> bool:
        """End all ranks of a launch. Return whether the server confirmed it in time."""
        try:
            self._send({"do": "end", "launch": launch})
            deadline = time.monotonic() + deadline_s
            while time.monotonic() < deadline:
                self._read(0.2)
                if {"ended": launch} in self._messages:
                    self._messages.remove({"ended": launch})
                    return True
        except ServerExited:
            pass
        return False

    def kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def release_launch(self, launch: int) -> None:
        """Ask the server to end the ranks of a successful launch, without waiting.

        Ending a process takes as long as forking it, and no caller needs to wait. The server ends the ranks
        before it handles the next message.
        """
        self._send({"do": "end", "launch": launch, "quietly": True})

    def messages(self, launch: int) -> list[tuple[str, list[Any]]]:
        """Return the server's messages about one launch since the last call, without waiting.

        Each message consists of a word ("started", "refused", "exit") and its values, beginning with the
        rank.
        """
        self._read(0.0)
        matching, others = [], []
        for message in self._messages:
            if _launch_of(message) == launch:
                ((kind, values),) = message.items()
                if kind == "started":
                    values[2] = self.site.host_pid(values[2])
                matching.append((kind, values[1:]))
            else:
                others.append(message)
        self._messages = others
        return matching

    def has_messages_for(self, launch: int) -> bool:
        return any(_launch_of(message) == launch for message in self._messages)

    def exited_when_idle(self) -> bool:
        """Return whether the server exited by itself because it was idle."""
        return self.owner == os.getpid() and self._process.poll() == 0

    def alive(self) -> bool:
        is_running = self.owner == os.getpid() and self._process.poll() is None
        return is_running and not self.control.peer_has_closed()

    def close(self) -> None:
        """End the server and its ranks, and remove their files."""
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
            # The kernel may take a long time to free a killed process's memory. The remaining steps do not
            # depend on this, so do not wait.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
        self._log.close()
        self.site.close()

    def _send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        try:
            self.control.send(message, fds)
        except OSError:
            self.has_exited = True
            raise ServerExited from None

    def _read(self, wait_s: float) -> None:
        try:
            messages = self.control.receive(wait_s)
        except (OSError, EOFError):
            self.has_exited = True
            raise ServerExited from None
        for message in messages:
            if "ready" in message:
                self._ready = True
            else:
                self._messages.append(message)


def folder_of(site: RankSite, launch: int) -> str:
    """Return the path of one launch's folder for the ranks at a site."""
    return f"{site.scratch}/world-{launch}"


def rank_settings() -> dict[str, str]:
    """Return the environment variables that a rank server needs from its start."""
    # Use one thread per rank, because ranks share the cores, and fork copies only the calling thread.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return {**threads, **HUGE_PAGES, "GLOO_SOCKET_IFNAME": loopback, **RESOLVER}


def _launch_of(message: dict[str, Any]) -> int | None:
    """Return the launch that a server's message is about, or None for `ended`, which end_launch reads."""
    (values,) = message.values()
    return values[0] if isinstance(values, list) else None


def start_method() -> str:
    """Return the start method for ranks on this machine: "fork", or "spawn" if fork is unsafe or missing."""
    method = os.environ.get(START_METHOD, "fork" if sys.platform == "linux" else "spawn")
    if method not in {"fork", "spawn"}:
        raise LaunchError(f"{START_METHOD}={method!r}: it must be 'fork' or 'spawn'.")
    return method
