"""Own the rank server on one host, and speak for it to the kernel.

    python -m helpers.hosts.agent ADDRESS INTERFACE     (with a socket as its standard input)

The host's Dask worker (`worker`) starts it as a separate process, for two reasons: a rank server must not
start in a child of multiprocessing, which workers under a nanny are, and the worker should not import what
ranks need. When its socket closes, or has been silent for ten seconds, it ends with all its ranks.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil
from msgspec import json, msgpack

from helpers.hosts.names import host_in
from helpers.hosts.streams import ANSWER, ASK, CONTROL, COUNT, GONE, RECORDS, Multiplexer, Rank
from helpers.hosts.versions import boot, versions
from helpers.ranks.connection import Connection, ServerGone
from helpers.ranks.process_snapshot import Details, Threads, details_here, threads_here
from helpers.ranks.site import Beside
from helpers.trace.log import Logs

_REACH_S = 3.0


class _Here(Beside):
    """The rank server of this host. It stays until the kernel no longer needs the host."""

    idle_s = 0.0


class Agent(Multiplexer):
    """The host's end of the streams."""

    def __init__(self, sock: socket.socket, interface: str, address: str) -> None:
        super().__init__(sock)
        self._interface, self._address = interface, address
        self._site = _Here()
        self._server: Connection | None = None
        self._logs: dict[tuple[int, int], Logs] = {}
        # Sockets that reserve the ports of a launch, so that no other program gets them while its ranks
        # live.
        self._held: dict[int, list[socket.socket]] = {}
        self._listening: socket.socket | None = None

    def close(self) -> None:
        """End the rank server and all that its ranks have started."""
        (self._server or self._site).close()

    def heard(self, kind: int, launch: int, rank: int, body: bytes) -> None:
        if kind == CONTROL:
            self._obey(json.decode(body))
        elif kind == ASK:
            message = msgpack.decode(body)
            number = message.pop("number")
            problem, answer = "", None
            try:
                answer = getattr(self, f"_{message.pop('what')}")(**message)
            except (OSError, ValueError) as error:
                problem = str(error)
            self.send(ANSWER, number, body=msgpack.encode((problem, answer)))

    # --- messages for the rank server --------------------------------------------------------------

    def _obey(self, message: dict[str, Any]) -> None:
        assert self._server is not None
        if message["do"] == "start":
            self._start(message["launch"], message["ranks"])
            return
        if message["do"] == "end":
            self._forget(message["launch"])
        self._server.control.send(message)

    def _start(self, launch: int, ranks: list[int]) -> None:
        """Do for the rank server what `World.start` does on one machine."""
        assert self._server is not None
        ends: dict[int, tuple[int, int]] = {}
        theirs = []
        try:
            logs = Logs(max(ranks) + 1)
            for rank in ranks:
                mine, other = socket.socketpair()
                theirs.append(other)
                read, write = os.pipe()
                ends[rank] = other.fileno(), write
                self._logs[launch, rank] = logs
                self.add(Rank(launch, rank, mine, read, reads_output=True))
            with suppress(ServerGone):  # `_from_server` reports it to the kernel
                self._server.start_ranks(launch, logs.fd, ends)
        except OSError as error:  # too many descriptors, or too little memory
            refused = [launch, ranks[0], str(error)]
            self.send(CONTROL, body=json.encode({"refused": refused}))
        finally:
            for other in theirs:
                other.close()
            for _, write in ends.values():
                os.close(write)

    def _forget(self, launch: int) -> None:
        self.drop(launch)
        for key in [key for key in self._logs if key[0] == launch]:
            self._logs.pop(key).close()
        for held in self._held.pop(launch, []):
            held.close()

    def _from_server(self, events: int) -> None:
        """Pass on the rank server's messages. A rank's exit is passed on after its last output."""
        assert self._server is not None
        try:
            messages = self._server.control.receive(0.0)
        except (EOFError, OSError):
            self.watch(self._server.fileno(), 0, self._from_server)
            self.send(GONE, body=self._server.last_words().encode())
            return
        for message in messages:
            values = message.get("exit")
            if values is not None and (rank := self.ranks.get((values[0], values[1]))):
                while rank.channel_open:
                    before = rank.under_way
                    self.take_channel(rank)
                    if rank.under_way == before:
                        break
                self.before_channel(rank)
            self.send(CONTROL, body=json.encode(message))

    def before_channel(self, rank: Rank) -> None:
        self.take_output(rank)
        self._send_records(rank)

    def _send_records(self, rank: Rank) -> None:
        logs = self._logs[rank.launch, rank.rank]
        while news := logs.news(rank.rank):
            start, lost, chunk = news
            head = COUNT.pack(start) + COUNT.pack(lost)
            self.send(RECORDS, rank.launch, rank.rank, head + chunk)

    # --- questions of the kernel ------------------------------------------------------------------

    def _about(self) -> dict[str, Any]:
        """Return what this host has: versions, folders, address."""
        interface, address = find_interface(self._interface, self._address)
        return {
            "name": socket.gethostname(),
            "versions": versions(),
            "interface": interface,
            "address": address,
            "gpus": _gpus(),
            "cores": os.cpu_count() or 1,
            "boot": boot(),
            "root": self._site.root,
            "scratch": self._site.scratch,
            "path": list(sys.path),
        }

    def _begin(self) -> None:
        """Start the rank server, once the kernel has compared all hosts."""
        self._server = Connection(self._site)
        self.watch(self._server.fileno(), selectors.EVENT_READ, self._from_server)

    def _ports(self, launch: int) -> list[int]:
        """Reserve two free ports for a launch."""
        _, address = find_interface(self._interface, self._address)
        held = self._held[launch] = [_held_port(address), _held_port(address)]
        return [int(each.getsockname()[1]) for each in held]

    def _listen(self) -> int:
        """Listen on a free port, to which the other hosts connect with `_reach`."""
        _, address = find_interface(self._interface, self._address)
        self._listening = socket.create_server((address, 0), family=_family(address))
        return int(self._listening.getsockname()[1])

    def _reach(self, others: Sequence[tuple[str, int]]) -> list[str]:
        """Connect to each of the others. Return the error of each, or ""."""
        with ThreadPoolExecutor(max(1, len(others))) as pool:
            return list(pool.map(_reaches, others))

    def _hush(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def _clock(self) -> int:
        return time.monotonic_ns()

    def _threads(self, launch: int, pids: dict[int, int]) -> Threads:
        """Return the threads of a launch's ranks, after sending what the ranks have recorded until now."""
        for rank in pids:
            if (known := self.ranks.get((launch, rank))) is not None:
                self._send_records(known)
        return threads_here(pids)

    def _details(self, pids: dict[int, int]) -> Details:
        return details_here(pids, self._server.pid if self._server else 0)

    def _rewind(self, launch: int) -> None:
        for logs in {id(log): log for key, log in self._logs.items() if key[0] == launch}.values():
            logs.rewind()


def find_interface(name: str, address: str) -> tuple[str, str]:
    """Return a network interface and its address.

    name: the interface's name, "" for the one with `address` (a Dask worker's, "tcp://10.0.0.2:41234").
    Raise ValueError if there is none.
    """
    host = host_in(address)
    have = {
        each: [a.address for a in some if a.family in {socket.AF_INET, socket.AF_INET6}]
        for each, some in psutil.net_if_addrs().items()
    }
    if name:
        if not have.get(name):
            raise ValueError(
                f"no network interface {name!r} has an address; available: {', '.join(have)}"
            )
        return name, have[name][0]
    for each, addresses in have.items():
        if host in addresses:
            return each, host
    raise ValueError(f"no network interface has the Dask worker's address {host}")


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _held_port(address: str) -> socket.socket:
    held = socket.socket(_family(address))
    # Bound but not listening: rank 0's store may listen there, and no other program gets the port.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((address, 0))
    return held


def _reaches(other: tuple[str, int]) -> str:
    try:
        address, port = other
        socket.create_connection((address, port), timeout=_REACH_S).close()
    except OSError as error:
        return str(error.strerror or error)
    return ""


def _gpus() -> int:
    # Not by torch, whose import takes longer than everything else in this process.
    devices = sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in os.listdir("/dev"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return devices if visible is None else min(devices, len(list(filter(None, visible.split(",")))))


def main() -> None:
    address, interface = sys.argv[1:3]
    agent = Agent(socket.socket(fileno=os.dup(0)), interface, address)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)  # otherwise the rank server would inherit the link and keep it open
    os.close(null)
    try:
        agent.serve()
    finally:
        agent.close()


if __name__ == "__main__":
    main()
