"""The system's view of the processes of a world's ranks, as input for `deadlock_watch` and `budget`.

On this machine, this view is read on demand (`LocalRank`). Other hosts read the view of their ranks, and send
it as data (`HostSnapshot`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from helpers.ranks.processes import living_children
from helpers.ranks.threads import (
    GLOO_LOOP,
    Thread,
    connection_queues,
    connections,
    listening_ports,
    lock_holders,
    read_threads,
    thread_times,
)

# Programs that a rank may start but that never send a message or a signal on their own initiative.
_HELPER_PROGRAMS = (b"pt_data_worker", b"multiprocessing.resource_tracker", b"torch_shm_manager")
_MAX_PROCESSES = 1000
# A process's running and queueing times, as returned by `thread_times`.
Times = tuple[int, int, int]


class RankSnapshot(Protocol):
    """One rank's process."""

    @property
    def threads(self) -> Sequence[Thread]:
        """The process's threads, main thread first; empty if it has ended or its host does not answer."""

    @property
    def has_children(self) -> bool:
        """Whether a process started by the rank is still running."""

    @property
    def children_may_act(self) -> bool:
        """Whether a running child process could still send a message or a signal."""

    @property
    def queues(self) -> Mapping[int, tuple[int, int]] | None:
        """The queues of the process's connections: see `threads.connection_queues`."""

    @property
    def ports(self) -> frozenset[int]:
        """The TCP ports on which the process listens."""

    @property
    def lock_holders(self) -> frozenset[int]:
        """The holders of the file locks for which the process waits."""

    @property
    def in_flight(self) -> bool:
        """Whether some of its sent bytes have not yet reached the receiver's machine."""


class WorldSnapshot(Protocol):
    """All ranks of a world, at one moment or shortly after it."""

    @property
    def ranks(self) -> Mapping[int, RankSnapshot]: ...

    @property
    def orphan_may_act(self) -> bool:
        """Whether an ended rank has left a process that could still act."""


class LocalRank:
    """One rank's process on this machine."""

    # Between two processes on one machine, a message arrives in the receiver's queue at once.
    in_flight = False

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @cached_property
    def threads(self) -> Sequence[Thread]:
        return read_threads(self.pid)

    @cached_property
    def has_children(self) -> bool:
        return bool(living_children(self.pid))

    @cached_property
    def children_may_act(self) -> bool:
        return any(map(_may_act, living_children(self.pid)))

    @cached_property
    def queues(self) -> Mapping[int, tuple[int, int]] | None:
        return connection_queues(self.pid)

    @cached_property
    def ports(self) -> frozenset[int]:
        return listening_ports(self.pid)

    @cached_property
    def lock_holders(self) -> frozenset[int]:
        return lock_holders(self.pid)


@dataclass(frozen=True)
class LocalSnapshot:
    """The ranks of one rank server on this machine."""

    ranks: Mapping[int, LocalRank]
    server: int

    @property
    def orphan_may_act(self) -> bool:
        """Whether the server has adopted a process that is still in its rank's session and could act."""
        pids = {rank.pid for rank in self.ranks.values()}
        adopted = set(living_children(self.server)) - pids
        return any(_session(pid) in pids and _may_act(pid) for pid in adopted)


def local_snapshot(pids: Mapping[int, int], server: int) -> LocalSnapshot:
    """Return a view of a rank server's ranks with these process ids (0 for ranks that have not started)."""
    return LocalSnapshot({rank: LocalRank(pid) for rank, pid in pids.items()}, server)


@dataclass(frozen=True)
class RemoteRank:
    """A host's report about one of its ranks: see `RankSnapshot`.

    If the host did not inspect the rank's children, they are assumed to be able to act.
    """

    threads: list[Thread] = field(default_factory=list)
    has_children: bool = False
    children_may_act: bool = True
    queues: dict[int, tuple[int, int]] | None = None
    ports: frozenset[int] = frozenset()
    in_flight: bool = False
    # For a file shared by several hosts, the kernel does not report the holder of a lock.
    lock_holders: frozenset[int] = frozenset()


@dataclass(frozen=True)
class HostSnapshot:
    """The report of one or several hosts about their ranks. times: see `process_times`."""

    ranks: dict[int, RemoteRank]
    orphan_may_act: bool
    times: dict[int, Times]


def host_snapshot(pids: Mapping[int, int], server: int, threads_only: bool) -> HostSnapshot:
    """Inspect a rank server's ranks for a kernel on another host; see `Servers.inspect_ranks`."""
    times, snapshot = process_times(pids.values()), local_snapshot(pids, server)
    if threads_only:
        ranks = {
            rank: RemoteRank(list(rank_snapshot.threads))
            for rank, rank_snapshot in snapshot.ranks.items()
        }
        return HostSnapshot(ranks, True, times)
    # Read the table once, because it is the same for all ranks, and long on a busy machine.
    table = list(connections(os.getpid()))
    ranks = {
        rank: _remote_rank(rank_snapshot, table) for rank, rank_snapshot in snapshot.ranks.items()
    }
    return HostSnapshot(ranks, snapshot.orphan_may_act, times)


def _remote_rank(rank: LocalRank, table: Sequence[Sequence[str]]) -> RemoteRank:
    threads, queues = list(rank.threads), connection_queues(rank.pid, table)
    # Bytes to another host count as unacknowledged until that host has received them.
    in_flight = any(unacknowledged for unacknowledged, _ in (queues or {}).values())
    children = rank.has_children, rank.children_may_act
    return RemoteRank(threads, *children, queues, listening_ports(rank.pid, table), in_flight)


def process_times(pids: Iterable[int]) -> dict[int, Times]:
    """Return {process id: `thread_times`} for processes and their descendants, with gloo's part separate."""
    all_pids = [pid for pid in pids if pid]
    for pid in all_pids:  # The list grows during the loop, so children of children are found too.
        if len(all_pids) < _MAX_PROCESSES:
            all_pids += living_children(pid)
    return {pid: thread_times(pid, separate_name=GLOO_LOOP) for pid in all_pids}


def _may_act(child: int) -> bool:
    """Return whether a rank's child process could still send a message or a signal.

    Data loaders are excluded: a wait for a data loader is recognized as a wait at a pipe.
    """
    with contextlib.suppress(OSError):
        description = (
            Path(f"/proc/{child}/cmdline").read_bytes() + Path(f"/proc/{child}/comm").read_bytes()
        )
        return not any(word in description for word in _HELPER_PROGRAMS)
    return False  # The child has ended.


def _session(pid: int) -> int:
    with contextlib.suppress(OSError):
        return os.getsid(pid)
    return 0
