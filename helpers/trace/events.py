"""What ranks said to each other, as data.

The recorder inside each rank makes `Event`s, the launcher collects them into one `Trace`,
and diagnosis, views and checks read it. Nothing here imports torch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

# Every collective `Event.op` that is recorded, in torch's words.
COLLECTIVES = frozenset(
    {
        "all_gather",
        "all_reduce",
        "all_to_all",
        "barrier",
        "broadcast",
        "gather",
        "reduce",
        "reduce_scatter",
        "scatter",
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the learner's own code.

    `cell` is what a reader calls the file: "cell 5", "demo.py"; `file` is what Python calls it.
    """

    file: str
    line: int
    function: str
    cell: str = ""
    source: str = ""

    def __str__(self) -> str:
        return f"{self.cell or self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Event:
    """One communication call, or one `span`, of one rank.

    op: what moved data: "send", "recv", one of `COLLECTIVES`, or "span".
    call: the function that the learner called ("isend", "all_gather_object", ...); equal to `op`
        where C++ made the call (DDP); for a span, its name.
    group, group_ranks: the process group's name and its members as global ranks.
    peer, root: global ranks; None where the op has none (and for an any-source recv until it ended).
    nbytes: bytes of the tensors this rank hands in (send, collectives) or receives into (recv).
    shapes: of those tensors. dtype: of the first of them, e.g. "float32".
    reduce_op: "SUM", "AVG", ... for reductions.
    gives, takes: of an all_to_all, how many elements this rank sends to each member and receives from each;
        of a scatter, the same (gives: of its root only, takes: one number).
    by: the file of torch that made the call for the learner ("nn/parallel/distributed.py" for DDP's forward),
        or "" if the learner's own line called a function of torch.distributed.
    asynchronous: the call returned before the transfer had ended (isend, irecv, async_op=True).
    start_ns: when the call was issued; wait_ns: when the rank began to wait for it; end_ns: when its
        Work had finished. All three on the machine's monotonic clock, the same for all ranks.
        wait_ns is None if nobody waited, end_ns is None if it was never seen to finish.
    before: what was in the tensors that the rank handed in; after: what is in those that it got, once its
        Work had finished. As `glance` writes them, and only of launches that somebody watches: else "".
    """

    rank: int
    seq: int
    op: str
    call: str
    group: str = ""
    group_ranks: tuple[int, ...] = ()
    peer: int | None = None
    root: int | None = None
    tag: int = 0
    nbytes: int = 0
    dtype: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    reduce_op: str = ""
    gives: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()
    by: str = ""
    asynchronous: bool = False
    start_ns: int = 0
    wait_ns: int | None = None
    end_ns: int | None = None
    where: Place | None = None
    error: str = ""
    before: str = ""
    after: str = ""

    @property
    def is_collective(self) -> bool:
        return self.op in COLLECTIVES

    @property
    def finished(self) -> bool:
        return self.end_ns is not None and not self.error


@dataclass(frozen=True, slots=True)
class Message:
    """A send and the recv that took it. `recv` is None while nobody has received it."""

    send: Event
    recv: Event | None

    @property
    def src(self) -> int:
        return self.send.rank

    @property
    def dst(self) -> int:
        assert self.send.peer is not None
        return self.send.peer


@dataclass(frozen=True, slots=True)
class Collective:
    """The calls with which the members of a group took part in its n-th collective."""

    group: str
    group_ranks: tuple[int, ...]
    index: int
    calls: tuple[Event, ...]

    @property
    def op(self) -> str:
        return self.calls[0].op

    @property
    def complete(self) -> bool:
        return {event.rank for event in self.calls} == set(self.group_ranks)


@dataclass(frozen=True)
class Trace:
    """All events of one run, ordered by rank and then by the order in which the rank issued them."""

    world_size: int
    events: tuple[Event, ...] = ()
    # Events beyond the cap on a run's trace: counted, not kept.
    dropped: int = 0
    # The global ranks of each process group over gloo that there was at the end, used or not.
    groups: tuple[tuple[int, ...], ...] = ()
    # The ranks that were run, where the rest of the world was imagined; none of a real run.
    imagined: tuple[int, ...] = ()
    # How many of the events are unanswered calls of earlier cells: a diagnosis needs them, a reader's trace
    # has none.
    earlier: int = 0
    # The host of each rank; empty where all ran on this machine.
    hosts: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    @property
    def ranks(self) -> Sequence[int]:
        """The ranks that there were, in order."""
        return self.imagined or range(self.world_size)

    def select(self, keep: Callable[[Event], bool]) -> Trace:
        """Return the trace of only those events for which `keep` is true."""
        return replace(self, events=tuple(e for e in self.events if keep(e)))

    @property
    def by_host(self) -> dict[str, list[int]]:
        """The ranks of each host, in rank order; empty where all ran on this machine."""
        found: dict[str, list[int]] = {}
        for rank, host in enumerate(self.hosts):
            found.setdefault(host, []).append(rank)
        return found

    def between_hosts(self, ranks: Iterable[int]) -> bool:
        """Say whether these ranks are on more than one host."""
        # A rank may name a peer that does not exist.
        return len({self.hosts[rank] for rank in ranks if 0 <= rank < len(self.hosts)}) > 1

    def of(self, rank: int) -> tuple[Event, ...]:
        """Return the events of one rank in the order in which it issued them."""
        return tuple(event for event in self.events if event.rank == rank)

    def between(self, bounds: Sequence[tuple[int, int]]) -> Trace:
        """Return the trace of the events that bounds[rank] = (first, last + 1) numbers of each rank."""
        return self.select(lambda e: bounds[e.rank][0] <= e.seq < bounds[e.rank][1])

    @property
    def calls(self) -> Trace:
        """The communication calls, without spans."""
        return self.select(lambda e: e.op != "span")

    @property
    def spans(self) -> Trace:
        """The spans that the ranks recorded of their own work, without communication."""
        return self.select(lambda e: e.op == "span")

    def messages(self) -> tuple[Message, ...]:
        """Pair each send with the recv that took it.

        Between two ranks of a group, messages with the same tag are taken in the order sent.
        """
        waiting: dict[tuple[str, int | None, int, int], list[Event]] = defaultdict(list)
        # A receive from any rank is filed under its sender once it has ended, and until then under None.
        for event in self.events:
            if event.op == "recv":
                waiting[event.group, event.peer, event.rank, event.tag].append(event)
        pairs = []
        for event in self.events:
            if event.op == "send" and event.peer is not None:
                # gloo keeps the order of messages with one tag between two ranks, and of no others
                queue = waiting[event.group, event.rank, event.peer, event.tag]
                pairs.append(Message(event, queue.pop(0) if queue else None))
        return tuple(pairs)

    def collectives(self) -> tuple[Collective, ...]:
        """Pair collectives: the n-th one that each member calls on a group is the same one."""
        counts: dict[tuple[str, int], int] = defaultdict(int)
        met: dict[tuple[str, tuple[int, ...], int], list[Event]] = defaultdict(list)
        for event in self.events:
            if event.is_collective:
                # by the order of the calls, as backends do: a collective has no name that is sent along
                index = counts[event.group, event.rank]
                counts[event.group, event.rank] += 1
                met[event.group, event.group_ranks, index].append(event)
        collectives = [
            Collective(group, ranks, index, tuple(sorted(calls, key=lambda e: e.rank)))
            for (group, ranks, index), calls in met.items()
        ]
        return tuple(sorted(collectives, key=lambda m: min(e.start_ns for e in m.calls)))


@dataclass(frozen=True, slots=True)
class Wait:
    """One rank of a stuck world: what it is in, and for whom it waits.

    call is "" for a rank that is in no call: then `state` says what it does
    ("returned", "died", "in Python", "in C++").
    """

    rank: int
    state: str
    event: Event | None = None
    waits_for: tuple[int, ...] = ()

    @property
    def call(self) -> str:
        return self.event.call if self.event else ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why no rank can go on.

    kind: "cycle", "mismatched_collectives", "different_shapes", "rank_left", "skipped_backward",
        "never_waited" (a transfer has both its ends, one of them as a Work that nobody waits for),
        "unmatched" (sends and receives that do not fit), "missing_key" (a key of a store that nobody sets),
        "file_lock" (a rank waits for a file lock whose holder cannot go on),
        or "stuck".
    summary: one sentence: who did what. advice: what to do next.
    waits: one for each rank, in rank order. guilty: the ranks to look at first.
    """

    kind: str
    summary: str
    advice: str
    waits: tuple[Wait, ...]
    guilty: tuple[int, ...] = ()
