"""The kernel's end of the connection to one host."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from helpers.hosts.peer import MAX_BYTES, WINDOW, Peer, PeerGone, Problem
from helpers.hosts.versions import boot_id
from helpers.ranks.clean_settings import environment_at_start
from helpers.ranks.placement import LocalSite
from helpers.ranks.stop import raise_if_stopped
from helpers.trace.log import write_new

ANSWER_S = 8.0
# Clocks drift by about 50 microseconds per second, so they are compared again after ten seconds.
_CLOCK_VALID_NS = 10 * 10**9


@dataclass(frozen=True)
class _Launch:
    """The kernel's state of one launch's ranks on one host.

    Args:
        log_fd: The descriptor of the memory for the ranks' records.
        pending_messages: Messages for `Servers.messages`, each with a future that is set when its world has
            read the message.
        channels: For each rank, a writer for the data that the world reads from the rank's channel.
    """

    log_fd: int
    pending_messages: deque[tuple[str, list[Any], asyncio.Future[None]]] = field(
        default_factory=deque
    )
    channels: dict[int, asyncio.StreamWriter] = field(default_factory=dict)


class HostLink(Peer):
    """The kernel's representation of one host, which is also a `RankSite`. It runs in Dask's event loop."""

    most_output, most_parts, most_result = (
        LocalSite.most_output,
        LocalSite.most_parts,
        LocalSite.most_result,
    )

    def __init__(
        self, name: str, comm: Any, about: Mapping[str, Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Start serving the host. about: the host's description of itself."""
        super().__init__(comm)
        self.name = name
        self.root, self.scratch = str(about["root"]), str(about["scratch"])
        self.address, self.interface = str(about["address"]), str(about["interface"])
        self.gpus, self.cores = int(about["gpus"]), int(about["cores"])
        self._path = [str(each) for each in about["path"]]
        # The host's monotonic clock minus this machine's, and the largest error.
        self.clock_ns = self.clock_within_ns = 0
        # The same machine has the same clock.
        self._clock_old_ns = 1 << 63 if about["boot"] and about["boot"] == boot_id() else 0
        self._loop = loop
        self._owner = os.getpid()
        self._launches: dict[int, _Launch] = {}
        # Readable if there may be new messages, or if the link has closed.
        self.wake, self._woken = socket.socketpair()
        self.wake.setblocking(False)
        self._woken.setblocking(False)
        self._served = self._schedule(self._serve())

    # --- for the kernel's threads -------------------------------------------------------------------

    def ask(self, method: str, kind: Any = Any, **given: Any) -> concurrent.futures.Future[Any]:
        """Call a method of the host, like `Peer.call`. `wait_for_answer` fetches the answer."""
        return self._schedule(self.call(method, kind, **given))

    def _schedule(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Run a coroutine in the link's event loop."""
        if self.closed:  # the loop may also be closed
            work.close()
            gone: concurrent.futures.Future[Any] = concurrent.futures.Future()
            gone.set_exception(PeerGone(self.why))
            return gone
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def start_ranks(
        self, launch: int, log: int, channels: Mapping[int, int]
    ) -> concurrent.futures.Future[Any]:
        """Start ranks on the host. Return a future for two ports, which the host reserves for the launch."""
        if not self.closed:
            self._launches[launch] = _Launch(os.dup(log))  # this is needed before the first message
        started = self.ask("start", launch=launch, ranks=list(channels))
        started.add_done_callback(lambda done: self._check_started(launch, min(channels), done))
        for rank, channel in channels.items():
            feeding = self._forward_to_channel(launch, rank, socket.socket(fileno=os.dup(channel)))
            self._loop.call_soon_threadsafe(self.spawn, feeding)
        return started

    def take_messages(self, launch: int) -> list[tuple[str, list[Any]]]:
        """Return this host's part of `Servers.messages`."""
        found = []
        if (known := self._launches.get(launch)) is not None:
            while known.pending_messages:
                word, values, read = known.pending_messages.popleft()
                found.append((word, values))
                self._loop.call_soon_threadsafe(_set, read)
        return found

    def drain(self) -> None:
        """Make `wake` unreadable until there is a new message."""
        with contextlib.suppress(OSError):  # there is no byte to read, or it is closed
            self.wake.recv(4096)

    def has_messages(self, launch: int) -> bool:
        known = self._launches.get(launch)
        return known is not None and bool(known.pending_messages)

    def forget(self, launch: int) -> None:
        """Free the kernel's state of a launch's ranks."""
        if (known := self._launches.pop(launch, None)) is not None:
            self._loop.call_soon_threadsafe(_release_launch, known)

    def close(self) -> None:
        """Disconnect from the host, which then ends all processes that it has started."""
        if self._owner != os.getpid():
            # this process was forked by a cell, but the connection belongs to the kernel
            return
        if not self.closed:  # if the connection is closed, the loop may be closed as well
            self._loop.call_soon_threadsafe(self._comm.abort)
            with contextlib.suppress(TimeoutError):
                self._served.result(5.0)
        self.wake.close()
        self._woken.close()

    def read_clock(self) -> None:
        """Compare the host's clock with this machine's clock, unless they were compared a moment ago."""
        if time.monotonic_ns() > self._clock_old_ns:
            with contextlib.suppress(PeerGone):  # `messages` reports that the host is lost
                wait_for_answer(self._schedule(self._measure_clock()))

    async def _measure_clock(self) -> None:
        """Ask the host for its clock.

        The host reads its clock between question and answer, most likely halfway (Cristian, "Probabilistic
        clock synchronization", 1989).
        """
        start = time.monotonic_ns()
        theirs = await self.call("clock", int)
        end = time.monotonic_ns()
        self.clock_ns, self.clock_within_ns = theirs - (start + end) // 2, (end - start) // 2
        self._clock_old_ns = end + _CLOCK_VALID_NS

    def environment(self) -> tuple[dict[str, str], list[str]]:
        """Return the variables set by cells in this kernel, and the interface for the ranks' connections.

        All other variables come from the host, because its folders and devices differ from this machine's.
        """
        given, now = environment_at_start(), dict(os.environ)
        changed = {name: value for name, value in now.items() if given.get(name) != value}
        own = {"GLOO_SOCKET_IFNAME": self.interface, "NCCL_SOCKET_IFNAME": self.interface}
        return {**changed, **own}, [name for name in given if name not in now]

    def cwd(self) -> str:
        return os.getcwd()  # if the host has no such folder, ranks stay in the worker's folder

    def path(self) -> list[str]:
        # The learner's folders may be on a shared file system, but packages come from the host.
        own = [each for each in sys.path if not each.startswith((sys.prefix, sys.base_prefix))]
        return list(dict.fromkeys([*own, *self._path]))

    # --- for the host -------------------------------------------------------------------------------

    async def on_word(self, launch: int, word: str, values: list[Any]) -> None:
        """Pass on a message from the rank server, and wait until the launch's world has read it."""
        if (known := self._launches.get(launch)) is not None:
            read = self._loop.create_future()
            known.pending_messages.append((word, values, read))
            self._wake_reader()
            await read

    async def on_records(self, launch: int, rank: int, start: int, lost: int, chunk: bytes) -> None:
        if (known := self._launches.get(launch)) is not None:
            write_new(known.log_fd, rank, start, lost, chunk)

    async def on_data(self, launch: int, rank: int, data: bytes) -> None:
        """Write data from a rank's channel for its world, and wait until the data is written."""
        known = self._launches.get(launch)
        if known is not None and (channel := known.channels.get(rank)) is not None:
            channel.write(data)
            await channel.drain()

    async def on_gone(self) -> None:
        self.why = "its rank server exited"
        self._comm.abort()

    # --- within -------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        try:
            await self.serve()
        finally:
            self._wake_reader()
            for launch in list(self._launches):
                self.forget(launch)

    def _check_started(
        self, launch: int, rank: int, started: concurrent.futures.Future[Any]
    ) -> None:
        """Report a host that cannot start ranks, because of too many descriptors or too little memory."""
        if not started.cancelled() and type(error := started.exception()) is Problem:
            self._schedule(self.on_word(launch, "refused", [rank, str(error)]))

    async def _forward_to_channel(self, launch: int, rank: int, sock: socket.socket) -> None:
        """Send the data that a world writes to a rank's channel."""
        reader, writer = await asyncio.open_connection(sock=sock, limit=MAX_BYTES)
        writer.transport.set_write_buffer_limits(0)  # `drain` then waits for all bytes
        if (known := self._launches.get(launch)) is None:
            writer.transport.abort()
            return
        known.channels[rank] = writer
        window, data = asyncio.Semaphore(WINDOW), b"-"
        while data:
            data = await reader.read(MAX_BYTES)
            await self.send(window, "write", launch=launch, rank=rank, data=data)

    def _wake_reader(self) -> None:
        with contextlib.suppress(OSError):  # full, so the reader wakes anyway, or closed
            self._woken.send(b"x")


def _set(read: asyncio.Future[None]) -> None:
    if not read.done():
        read.set_result(None)


def _release_launch(launch: _Launch) -> None:
    os.close(launch.log_fd)
    for _, _, read in launch.pending_messages:
        _set(read)
    for channel in launch.channels.values():
        channel.transport.abort()


def wait_for_answer(
    reply_future: concurrent.futures.Future[Any],
    deadline_s: float = ANSWER_S,
    meanwhile: Callable[[], None] | None = None,
) -> Any:
    """Wait for the answer to a call.

    Args:
        reply_future: The future returned by `HostLink.ask`.
        deadline_s: Maximum time to wait, in seconds.
        meanwhile: A function called repeatedly until the answer has arrived.

    Raises:
        Problem: The host reports a problem.
        PeerGone: The host does not answer, or is lost.
    """
    until = time.monotonic() + deadline_s
    while not reply_future.done():
        raise_if_stopped()
        if time.monotonic() > until:
            reply_future.cancel()
            raise PeerGone("it does not answer")
        if meanwhile is not None:
            meanwhile()
        else:
            concurrent.futures.wait([reply_future], 0.1)
    return reply_future.result()
