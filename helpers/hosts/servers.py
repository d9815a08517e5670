"""Combine the rank servers of several hosts, so that a `World` can use them as one."""

from __future__ import annotations

import contextlib
import itertools
import selectors
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from helpers.hosts.link import RemoteSite
from helpers.ranks.connection import Connection, Rendezvous, ServerGone
from helpers.ranks.failures import LaunchError
from helpers.ranks.process_snapshot import Details, Observed, Threads, Times, View
from helpers.ranks.site import Site
from helpers.ranks.threads import Thread

# Timeout in seconds for hosts to end the ranks of a launch. If a host takes longer, its link is closed:
# then its agent ends the ranks, or its worker ends the agent.
_END_S = 5.0
# Timeout in seconds for hosts to look at their ranks.
_VIEW_S = 1.0
_UNKNOWN = Observed(children_may_act=True)


class _View:
    """A snapshot of a world's ranks on all hosts. Details are requested when first needed.

    If a host does not answer, its ranks count as not waiting: they have no threads, and their children may
    still act.
    """

    def __init__(
        self,
        asked: Sequence[tuple[RemoteSite, Mapping[int, int]]],
        launch: int,
        meanwhile: Callable[[], None],
    ) -> None:
        self._asked = asked
        self.ranks = {rank: _RemoteRank(self, rank) for _, pids in asked for rank in pids}
        self.threads: dict[int, list[Thread]] = {}
        self.times: dict[tuple[str, int], Times] = {}
        for host, answer in self._ask("threads", Threads, meanwhile, launch=launch):
            self.threads |= answer.ranks
            self.times |= {(host.name, pid): times for pid, times in answer.times.items()}

    @cached_property
    def details(self) -> dict[int, Observed]:
        return {rank: one for each in self._all_details for rank, one in each.ranks.items()}

    @property
    def left_may_act(self) -> bool:
        return any(each.left_may_act for each in self._all_details)

    @cached_property
    def _all_details(self) -> list[Details]:
        return [answer for _, answer in self._ask("details", Details, None)]

    def _ask(
        self, what: str, kind: Any, meanwhile: Callable[[], None] | None, **given: Any
    ) -> Iterator[tuple[RemoteSite, Any]]:
        """Ask all hosts in parallel. Yield the answers that arrive in time."""
        until = time.monotonic() + _VIEW_S
        asked = [(host, host.link.question(what, pids=pids, **given)) for host, pids in self._asked]
        for host, number in asked:
            with contextlib.suppress(TimeoutError, LaunchError):
                left = max(0.0, until - time.monotonic())
                yield host, host.link.answer(number, kind, left, meanwhile)


class _RemoteRank:
    """One rank of a `_View`. See `process_snapshot.OneRank`."""

    # The kernel does not name the holder of a lock on a file that several hosts share.
    lock_holders: frozenset[int] = frozenset()

    def __init__(self, view: _View, rank: int) -> None:
        self._view, self._rank = view, rank

    @property
    def threads(self) -> Sequence[Thread]:
        return self._view.threads.get(self._rank, [])

    @property
    def has_children(self) -> bool:
        return self._details.has_children

    @property
    def children_may_act(self) -> bool:
        return self._details.children_may_act

    @property
    def queues(self) -> Mapping[int, tuple[int, int]] | None:
        return self._details.queues

    @property
    def ports(self) -> frozenset[int]:
        return self._details.ports

    @property
    def in_flight(self) -> bool:
        return self._details.in_flight

    @property
    def _details(self) -> Observed:
        return self._view.details.get(self._rank, _UNKNOWN)


class HostServers:
    """One `Connection` for each host. Ranks are placed host by host, as torchrun places them."""

    def __init__(self, hosts: Sequence[RemoteSite]) -> None:
        self.hosts = list(hosts)
        self.lock = threading.RLock()
        self.gone = False
        self.cores = sum(host.cores for host in hosts)
        self.lost: Sequence[str] = ()
        self.closed = False
        self._times: dict[tuple[str, int], Times] = {}
        self._connections = {host.name: Connection(host) for host in hosts}
        self._launches = itertools.count(1)
        # launch -> the number of the question for its ports
        self._ports: dict[int, int] = {}
        # launch -> the host of each of its ranks
        self._placed: dict[int, dict[int, RemoteSite]] = {}
        # (launch, host) pairs whose loss has been reported.
        self._reported: set[tuple[int, str]] = set()
        # A selector has one descriptor for all of them, which is readable when any of them is.
        self._all: Any = selectors.DefaultSelector()
        for connection in self._connections.values():
            self._all.register(connection.fileno(), selectors.EVENT_READ)

    def wait_until_ready(self) -> None:
        for name, connection in self._connections.items():
            try:
                connection.wait_until_ready()
            except LaunchError as error:
                raise LaunchError(f"{name}: {error}") from None

    def want(self, names: Iterable[str]) -> None:
        names = list(names)
        for connection in self._connections.values():
            with contextlib.suppress(ServerGone):  # reported when its ranks are
                connection.want(names)

    def new_launch(self) -> int:
        return next(self._launches)

    def sites(self, world_size: int) -> Sequence[Site]:
        return self._place(world_size)

    def _place(self, world_size: int) -> list[RemoteSite]:
        each, more = divmod(world_size, len(self.hosts))
        return [
            host for i, host in enumerate(self.hosts) for _ in range(each + (1 if i < more else 0))
        ]

    def rendezvous(self, launch: int) -> Rendezvous | None:
        first = self.hosts[0]
        for host in self.hosts:
            host.ask_clock()
        # Ask for the ports of the next launch now, so that only the first launch waits for an answer.
        number = self._ports.pop(launch, 0) or first.link.question("ports", launch=launch)
        try:
            store, port = first.link.answer(number, list[int])
        except TimeoutError as error:
            raise LaunchError(f"lost host {first.name}: {error}.") from None
        self._ports[launch + 1] = first.link.question("ports", launch=launch + 1)
        return Rendezvous(first.address, store, port)

    def host_names(self, world_size: int) -> tuple[str, ...]:
        return tuple(host.name for host in self._place(world_size))

    def gpus(self, world_size: int) -> int:
        placed = self._place(world_size)
        return sum(min(host.gpus, placed.count(host)) for host in self.hosts)

    def clocks(self, world_size: int) -> Sequence[int]:
        for host in self.hosts:
            host.ask_clock()
        for host in self.hosts:
            with contextlib.suppress(TimeoutError):  # the host is lost, which `messages` reports
                host.read_clock()
        return [host.clock_ns for host in self._place(world_size)]

    def view(self, launch: int, pids: Mapping[int, int], meanwhile: Callable[[], None]) -> View:
        placed = self._placed[launch]
        asked = [
            (host, {rank: pid for rank, pid in pids.items() if placed[rank] is host})
            for host in self._hosts_of(launch)
        ]
        view = _View(asked, launch, meanwhile)
        self._times = view.times
        return view

    def times(self, pids: Sequence[int]) -> Mapping[Any, Times]:
        return self._times if pids else {}  # as of the last call of `view`

    def fileno(self) -> int:
        return int(self._all.fileno())  # the descriptor of an epoll or a kqueue

    def start_ranks(self, launch: int, log: int, ends: Mapping[int, tuple[int, int]]) -> None:
        sites = self._place(len(ends))
        self._placed[launch] = {rank: sites[rank] for rank in ends}
        for host in self.hosts:
            own = {rank: pair for rank, pair in ends.items() if sites[rank] is host}
            if own:
                with contextlib.suppress(ServerGone):  # reported by `messages`
                    self._connections[host.name].start_ranks(launch, log, own)

    def rewind(self, launch: int) -> None:
        for host in self._hosts_of(launch):
            host.link.tell("rewind", launch=launch)

    def messages(self, launch: int) -> list[tuple[str, list[Any]]]:
        found = []
        for host in self._hosts_of(launch):
            connection = self._connections[host.name]
            if not connection.gone:
                try:
                    found += connection.messages(launch)
                except ServerGone:
                    self._all.unregister(connection.fileno())
            if connection.gone and (launch, host.name) not in self._reported:
                self._reported.add((launch, host.name))
                ranks = [rank for rank, at in self._placed[launch].items() if at is host]
                found += [("lost", [rank, host.link.why]) for rank in ranks]
        return found

    def has_word_for(self, launch: int) -> bool:
        return any(
            connection.gone or connection.has_word_for(launch)
            for connection in self._connections.values()
        )

    def end_launch(self, launch: int) -> bool:
        hosts = self._hosts_of(launch)
        heard = [host for host in hosts if self._connections[host.name].ask_to_end(launch)]
        until = time.monotonic() + _END_S
        for host in heard:
            left = max(0.0, until - time.monotonic())
            if not self._connections[host.name].has_ended(launch, left):
                host.link.close()
        self._forget(launch)
        return True

    def kill(self, pid: int) -> None:
        pass  # its host's agent does this

    def dismiss_launch(self, launch: int) -> None:
        for host in self._hosts_of(launch):
            with contextlib.suppress(ServerGone):
                self._connections[host.name].dismiss_launch(launch)
        self._forget(launch)

    def alive(self) -> bool:
        return all(connection.alive() for connection in self._connections.values())

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.lost = [host.name for host in self.hosts if host.link.closed]
        # Another thread may be watching a launch, which must see all hosts close together.
        for host in self.hosts:
            if not host.link.closed:
                host.link.why = "the hosts were closed"
            self._connections[host.name].gone = True
        for connection in self._connections.values():
            connection.close()
        self._all.close()

    def _hosts_of(self, launch: int) -> list[RemoteSite]:
        used = {host.name for host in self._placed.get(launch, {}).values()}
        return [host for host in self.hosts if host.name in used]

    def _forget(self, launch: int) -> None:
        self._placed.pop(launch, None)
        self._reported = {each for each in self._reported if each[0] != launch}
