"""Combine the rank servers of several hosts, so that a `World` can use them like a single server."""

from __future__ import annotations

import contextlib
import itertools
import selectors
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from helpers.hosts.link import HostLink, wait_for_answer
from helpers.hosts.peer import Problem
from helpers.ranks.connection import READY_TIMEOUT_S, PollCallback, Rendezvous
from helpers.ranks.failures import LaunchError
from helpers.ranks.placement import RankSite
from helpers.ranks.process_snapshot import HostSnapshot, RemoteRank, Times, WorldSnapshot

# Timeout in seconds for hosts to end the ranks of a launch. If a host takes longer, its link is closed,
# which makes its worker end the ranks.
_END_TIMEOUT_S = 5.0
# Timeout in seconds for hosts to inspect their ranks.
_SNAPSHOT_TIMEOUT_S = 1.0


class HostServers:
    """The rank servers of several hosts. Ranks are placed host by host, as under torchrun."""

    has_exited = False

    def __init__(self, hosts: Sequence[HostLink]) -> None:
        self.hosts = list(hosts)
        self.lock = threading.RLock()
        self.cores = sum(host.cores for host in hosts)
        self.lost_hosts: Sequence[str] = ()
        self.closed = False
        self._wanted: set[str] = set()
        self._times: dict[tuple[str, int], Times] = {}
        self._launches = itertools.count(1)
        # launch -> the first host's answer to starting its ranks, with the launch's ports
        self._started: dict[int, Future[Any]] = {}
        # launch -> the host of each of its ranks
        self._placed: dict[int, list[HostLink]] = {}
        # (launch, host) pairs whose loss has been reported.
        self._reported: set[tuple[int, str]] = set()
        # A selector has a single descriptor for all hosts, which is readable when any of the links is
        # readable.
        self._all: Any = selectors.DefaultSelector()
        self._ready = [(host, host.ask("ready")) for host in hosts]
        for host in hosts:
            self._all.register(host.wake, selectors.EVENT_READ)

    def wait_until_ready(self) -> None:
        for host, ready in self._ready:
            try:
                wait_for_answer(ready, READY_TIMEOUT_S)
            except Problem as problem:
                raise LaunchError(f"{host.name}: {problem}") from None

    def request_imports(self, names: Iterable[str]) -> None:
        if new := list(set(names) - self._wanted):
            self._wanted.update(new)
            for host in self.hosts:
                host.ask("want", names=new)

    def new_launch(self) -> int:
        return next(self._launches)

    def sites(self, world_size: int) -> Sequence[RankSite]:
        return self._place_ranks(world_size)

    def _place_ranks(self, world_size: int) -> list[HostLink]:
        each, more = divmod(world_size, len(self.hosts))
        return [
            host for i, host in enumerate(self.hosts) for _ in range(each + (1 if i < more else 0))
        ]

    def rendezvous(self, launch: int) -> Rendezvous | None:
        try:
            store, port = wait_for_answer(self._started.pop(launch))
        except Problem as problem:
            raise LaunchError(f"{self.hosts[0].name}: {problem}.") from None
        return Rendezvous(self.hosts[0].address, store, port)

    def host_names(self, world_size: int) -> tuple[str, ...]:
        return tuple(host.name for host in self._place_ranks(world_size))

    def gpus(self, world_size: int) -> int:
        placed = self._place_ranks(world_size)
        return sum(min(host.gpus, placed.count(host)) for host in self.hosts)

    def clocks(self, world_size: int) -> Sequence[int]:
        for host in self.hosts:
            host.read_clock()
        return [host.clock_ns for host in self._place_ranks(world_size)]

    def inspect_ranks(
        self, launch: int, pids: Mapping[int, int], threads_only: bool, poll: PollCallback
    ) -> WorldSnapshot:
        """Inspect the ranks on all hosts.

        If a host does not answer, its ranks are returned without threads, so they do not count as waiting.
        """
        deadline, asked = time.monotonic() + _SNAPSHOT_TIMEOUT_S, []
        for host in self._hosts_of(launch):
            own = {rank: pid for rank, pid in pids.items() if self._placed[launch][rank] is host}
            arguments = {"launch": launch, "pids": own, "brief": threads_only}
            asked.append((host, host.ask("view", HostSnapshot, **arguments)))
        ranks, self._times, may_act = {rank: RemoteRank() for rank in pids}, {}, False
        for host, pending in asked:
            with contextlib.suppress(Problem):
                found = wait_for_answer(pending, deadline - time.monotonic(), poll)
                ranks |= found.ranks
                may_act |= found.orphan_may_act
                self._times |= {(host.name, pid): times for pid, times in found.times.items()}
        return HostSnapshot(ranks, may_act, {})

    def times(self, pids: Sequence[int]) -> Mapping[Any, Times]:
        return self._times if pids else {}  # as of the last call of `inspect_ranks`

    def fileno(self) -> int:
        return int(self._all.fileno())  # the descriptor of an epoll or kqueue object

    def start_ranks(self, launch: int, log: int, ends: Mapping[int, tuple[int, int]]) -> None:
        placed = self._placed[launch] = self._place_ranks(len(ends))
        for host in self._hosts_of(launch):
            own = {rank: channel for rank, (channel, _) in ends.items() if placed[rank] is host}
            self._started.setdefault(launch, host.start_ranks(launch, log, own))

    def rewind_logs(self, launch: int) -> None:
        for host in self._hosts_of(launch):
            host.ask("rewind_logs", launch=launch)

    def messages(self, launch: int) -> list[tuple[str, list[Any]]]:
        for host in self.hosts:  # also hosts without ranks of this launch, whose messages stay
            host.drain()
        found = []
        for host in self._hosts_of(launch):
            found += host.take_messages(launch)
            if self._has_unreported_loss(launch, host):
                self._reported.add((launch, host.name))
                why = "the hosts were closed" if self.closed else host.why
                ranks = [rank for rank, at in enumerate(self._placed[launch]) if at is host]
                found += [("lost", [rank, why]) for rank in ranks]
        return found

    def has_messages_for(self, launch: int) -> bool:
        return any(
            host.has_messages(launch) or self._has_unreported_loss(launch, host)
            for host in self._hosts_of(launch)
        )

    def _has_unreported_loss(self, launch: int, host: HostLink) -> bool:
        """Return whether the loss of one of a launch's hosts has not been reported yet."""
        return (self.closed or host.closed) and (launch, host.name) not in self._reported

    def end_launch(self, launch: int) -> bool:
        hosts = self._hosts_of(launch)
        until = time.monotonic() + _END_TIMEOUT_S
        asked = [(host, host.ask("end", launch=launch, without_waiting=False)) for host in hosts]
        for host, each in asked:
            try:
                wait_for_answer(each, until - time.monotonic())
            except Problem:
                host.close()
        self._forget(launch)
        return True

    def kill(self, pid: int) -> None:
        pass  # the worker on the rank's host does this

    def release_launch(self, launch: int) -> None:
        for host in self._hosts_of(launch):
            host.ask("end", launch=launch, without_waiting=True)
        self._forget(launch)

    def alive(self) -> bool:
        return not any(host.closed for host in self.hosts)

    def close(self) -> None:
        if self.closed:
            return
        self.lost_hosts = [host.name for host in self.hosts if host.closed]
        # Another thread may be watching a launch, so all hosts must close together.
        self.closed = True
        for host in self.hosts:
            host.close()
        self._all.close()

    def _hosts_of(self, launch: int) -> list[HostLink]:
        return [host for host in self.hosts if host in self._placed.get(launch, [])]

    def _forget(self, launch: int) -> None:
        for host in self._hosts_of(launch):
            host.forget(launch)
        self._placed.pop(launch, None)
        self._reported = {each for each in self._reported if each[0] != launch}
