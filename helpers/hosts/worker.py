"""Own a host's rank server in a Dask worker, and connect it to the kernel.

    kernel == a connection of Dask's ==> Host (in the worker) == control socket ==> rank server --> ranks

The worker itself does not import torch and runs no learner code. When the connection to the kernel closes or
is silent for ten seconds, or when the worker exits, the rank server ends with all its ranks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed import Worker
from distributed.core import Status

from helpers.hosts.network import connection_error, family, find_interface, held_port
from helpers.hosts.peer import MAX_BYTES, WINDOW, Peer
from helpers.hosts.versions import boot_id, versions
from helpers.ranks.connection import Connection, ServerExited
from helpers.ranks.placement import LocalSite
from helpers.ranks.process_snapshot import HostSnapshot, host_snapshot
from helpers.trace.log import Logs

# The name of the request to a worker.
NAME = "real-ranks"
# Time limit in seconds for reconnecting a kernel that lost a host.
_RETRY_S = 10.0


def install(in_kernels_group: bool, *, dask_worker: Worker) -> None:
    """Make a worker respond to the request `NAME` by serving a kernel until the kernel disconnects.

    in_kernels_group: whether the worker is in the kernel's process group. In this case the worker leaves the
    group, because otherwise a Stop in the notebook would end it.
    """
    if NAME in dask_worker.handlers:
        return
    if in_kernels_group:
        os.setsid()
    kernels: list[object] = []

    async def handler(comm: Any, interface: str = "", ends_cluster: bool = False) -> Status:
        """Serve a kernel.

        ends_cluster: whether the cluster was started for this kernel. A killed kernel cannot end it.
        """
        kernels.append(comm)
        host = Host(comm)
        try:
            await host.send_description(interface, dask_worker.address)
            await host.serve()
        finally:
            kernels.remove(comm)
            await host.close()
        if ends_cluster:
            await asyncio.sleep(_RETRY_S)
            if not kernels:
                await dask_worker.scheduler.terminate()
        return Status.dont_reply

    dask_worker.handlers[NAME] = handler


class _HostLocalSite(LocalSite):
    """The place of this host's rank server. The server runs until the kernel no longer needs the host."""

    idle_s = 0.0


@dataclass
class _Rank:
    """This process's state of one rank.

    Args:
        channel: This end of the rank's channel.
        output: The descriptor for reading the rank's output.
        exited: The rank server's message about the rank's exit; None if the launch was ended.
        open: The subset of these two descriptors from which more data may arrive.
    """

    launch: int
    rank: int
    channel: socket.socket
    output: int
    exited: asyncio.Future[list[Any] | None]
    open: set[int] = field(default_factory=set)
    window: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WINDOW))
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.channel.setblocking(False)
        os.set_blocking(self.output, False)
        self.open |= {self.channel.fileno(), self.output}
        self.exited.add_done_callback(lambda _: self._ready.set())

    async def wait(self) -> None:
        """Wait until a descriptor is readable or the rank has exited."""
        loop = asyncio.get_running_loop()
        self._ready.clear()
        for fd in self.open:
            loop.add_reader(fd, self._ready.set)
        try:
            await self._ready.wait()
        finally:
            for fd in self.open:
                loop.remove_reader(fd)

    def read(self, fd: int) -> bytes:
        """Return the data available from a descriptor, without waiting."""
        data = b""
        try:
            while fd in self.open and len(data) < MAX_BYTES:
                chunk = os.read(fd, MAX_BYTES // 4)
                data += chunk
                if not chunk:
                    self.open.remove(fd)
        except BlockingIOError:
            pass
        except OSError:
            self.open.remove(fd)
        return data


@dataclass
class _Launch:
    """This process's state of one launch.

    Args:
        logs: The records of the launch's ranks.
        port_sockets: Sockets that reserve the launch's ports, so that no other program can take them while
            the ranks are running.
        ranks: The launch's ranks on this host.
    """

    logs: Logs
    port_sockets: list[socket.socket]
    ranks: dict[int, _Rank] = field(default_factory=dict)


class Host(Peer):
    """The host's end of a connection to a kernel, and the host's rank server."""

    def __init__(self, comm: Any) -> None:
        super().__init__(comm)
        self._server = Connection(_HostLocalSite())
        self._address = ""
        self._launches: dict[int, _Launch] = {}
        self._ended: dict[int, asyncio.Future[None]] = {}
        self._listening: socket.socket | None = None

    async def close(self) -> None:
        """End the rank server and all processes started by its ranks."""
        asyncio.get_running_loop().remove_reader(self._server.fileno())
        for launch in list(self._launches):
            self._forget(launch)
        if self._listening is not None:
            self._listening.close()
        await asyncio.to_thread(self._server.close)

    # --- the host -----------------------------------------------------------------------------------

    async def send_description(self, interface: str, worker: str) -> None:
        """Send a description of this host: versions, folders, address."""
        try:
            interface, self._address = find_interface(interface, worker)
        except ValueError as error:
            await self._comm.write({"problem": str(error)})
            return
        # A json.py in the worker's folder must not replace Python's module.
        workers = {"", os.getcwd(), os.path.dirname(sys.argv[0])}
        site = self._server.site
        about = {
            "name": socket.gethostname(),
            "versions": versions(),
            "interface": interface,
            "address": self._address,
            "gpus": _gpus(),
            "cores": os.cpu_count() or 1,
            "boot": boot_id(),
            "root": site.root,
            "scratch": site.scratch,
            "path": [site.root, *(path for path in sys.path if path not in workers)],
        }
        await self._comm.write(about)

    async def on_listen(self) -> int:
        """Listen on a free port, to which the other hosts connect by `on_reach`."""
        self._listening = socket.create_server((self._address, 0), family=family(self._address))
        return int(self._listening.getsockname()[1])

    async def on_reach(self, others: Sequence[tuple[str, int]]) -> list[str]:
        """Connect to each of the other hosts. Return each connection's error, or "" if it succeeded."""
        return await asyncio.gather(*(asyncio.to_thread(connection_error, each) for each in others))

    async def on_ready(self) -> None:
        """Wait until the rank server is ready."""
        if self._listening is not None:
            self._listening.close()
        await asyncio.to_thread(self._server.wait_until_ready)
        asyncio.get_running_loop().add_reader(self._server.fileno(), self._forward_messages)

    async def on_clock(self) -> int:
        return time.monotonic_ns()

    async def on_want(self, names: list[str]) -> None:
        self._server.request_imports(names)

    # --- a launch -----------------------------------------------------------------------------------

    async def on_start(self, launch: int, ranks: list[int]) -> list[int]:
        """Start ranks like `World.start` on one machine. Return two ports reserved for the launch."""
        held = [held_port(self._address), held_port(self._address)]
        known = self._launches[launch] = _Launch(Logs(max(ranks) + 1), held)
        ends: dict[int, tuple[int, int]] = {}
        theirs = []
        try:
            for number in ranks:
                mine, other = socket.socketpair()
                theirs.append(other)
                read, write = os.pipe()
                ends[number] = other.fileno(), write
                exited = asyncio.get_running_loop().create_future()
                rank = known.ranks[number] = _Rank(launch, number, mine, read, exited)
                self.spawn(self._serve_rank(rank))
            with contextlib.suppress(ServerExited):  # `_forward_messages` reports it
                self._server.start_ranks(launch, known.logs.fd, ends)
        finally:
            for other in theirs:
                other.close()
            for _, write in ends.values():
                os.close(write)
        return [int(each.getsockname()[1]) for each in held]

    async def on_write(self, launch: int, rank: int, data: bytes) -> None:
        """Write to a rank's channel; without data, close this direction."""
        if (known := self._launches.get(launch)) is not None:
            channel = known.ranks[rank].channel
            async with known.ranks[rank].writing:
                if data:
                    await asyncio.get_running_loop().sock_sendall(channel, data)
                else:
                    channel.shutdown(socket.SHUT_WR)

    async def on_view(self, launch: int, pids: dict[int, int], brief: bool) -> HostSnapshot:
        """Send the latest records of a launch's ranks, then inspect the ranks."""
        for rank in pids:
            self._send_records(launch, rank)
        return await asyncio.to_thread(host_snapshot, pids, self._server.pid, brief)

    async def on_rewind_logs(self, launch: int) -> None:
        self._launches[launch].logs.rewind()

    async def on_end(self, launch: int, without_waiting: bool) -> None:
        """End the ranks of a launch. Unless without_waiting, wait until they have ended."""
        if without_waiting:
            self._server.release_launch(launch)
        else:
            ended = self._ended[launch] = asyncio.get_running_loop().create_future()
            self._server.control.send({"do": "end", "launch": launch})
            await ended
        self._forget(launch)

    def _forget(self, launch: int) -> None:
        known = self._launches.pop(launch, None)
        if known is None:  # the launch could not be started
            return
        for rank in known.ranks.values():
            if not rank.exited.done():
                rank.exited.set_result(None)
        known.logs.close()
        for port_socket in known.port_sockets:
            port_socket.close()

    async def _serve_rank(self, rank: _Rank) -> None:
        """Forward a rank's output, records and frames, in this order, and finally its exit."""
        try:
            while not rank.exited.done():
                await rank.wait()
                await self._forward_output(rank)
            if (values := rank.exited.result()) is not None:
                await self._forward_output(rank)
                for _ in range(WINDOW):
                    await rank.window.acquire()
                self.post("word", launch=rank.launch, word="exit", values=values)
        finally:
            rank.channel.close()
            os.close(rank.output)

    async def _forward_output(self, rank: _Rank) -> None:
        """Send the data that is available from a rank."""
        launch, number = rank.launch, rank.rank
        while launch in self._launches:
            # Read them in this order, because a rank prints and records before it answers.
            data = rank.read(rank.channel.fileno())
            output = rank.read(rank.output)
            self._send_records(launch, number)
            if output:
                await self.call("word", launch=launch, word="printed", values=[number, output])
            if data:
                await self.send(rank.window, "data", launch=launch, rank=number, data=data)
            if not (output or data):
                return

    def _send_records(self, launch: int, rank: int) -> None:
        while news := self._launches[launch].logs.read_new(rank):
            start, lost, chunk = news
            self.post("records", launch=launch, rank=rank, start=start, lost=lost, chunk=chunk)

    def _forward_messages(self) -> None:
        """Forward the rank server's messages, but a rank's exit only after all of the rank's data."""
        loop = asyncio.get_running_loop()
        try:
            messages = self._server.control.receive(0.0)
        except (EOFError, OSError):
            self._server.has_exited = True
            loop.remove_reader(self._server.fileno())
            self.post("gone")
            return
        for message in messages:
            ((word, values),) = message.items()
            if word == "ended":
                self._ended.pop(values).set_result(None)
                continue
            launch, *rest = values
            if word != "exit":
                self.post("word", launch=launch, word=word, values=rest)
            elif launch in self._launches:
                self._launches[launch].ranks[rest[0]].exited.set_result(rest)


def _gpus() -> int:
    # Do not use torch, because its import takes longer than all other work of this process.
    devices = sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in os.listdir("/dev"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return devices if visible is None else min(devices, len(list(filter(None, visible.split(",")))))
