"""The ranks' communication as data.

The recorder inside each rank writes `Event`s, the launcher collects them into one `Trace`, and diagnosis,
views and checks read the trace. This module does not import torch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

MAX_EVENTS = 50_000
"""Maximum number of one rank's events that are recorded in a task, and kept in a trace."""
MAX_UNWAITED = 1_000
"""Maximum number of one rank's asynchronous calls without a wait that are recorded in a task."""

# All values of `Event.op` for collectives, in torch's words.
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
    """A line of the learner's code.

    cell: the reader's name of the file, such as "cell 5" or "demo.py". file: Python's name of the file.
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

    Attributes:
        op: The operation: "send", "recv", one of `COLLECTIVES`, or "span".
        call: The function that the learner called ("isend", "all_gather_object", ...); the same as `op` if
            C++ made the call (DDP). For a span, this is its name.
        group, group_ranks: The process group's name and its members as global ranks.
        peer, root: Global ranks; None if the op has none. The peer of a recv from any source is None until
            the recv has ended.
        nbytes: Bytes of the tensors that this rank passes (send, collectives) or receives into (recv).
        dtype, shapes: The dtype of the first of these tensors, e.g. "float32", and the shapes of all of them.
        reduce_op: "SUM", "AVG", ... for reductions.
        gives, takes: For an all_to_all, the numbers of elements that this rank sends to and receives from
            each member. A scatter also has these fields, but only the root has `gives`, and `takes` is one
            number.
        by: The file of torch that made the call for the learner ("nn/parallel/distributed.py" for DDP's
            forward), or "" if the learner's line directly called a function of torch.distributed.
        asynchronous: Whether the call returned before the transfer had ended (isend, irecv, async_op=True).
        start_ns: The time at which the call was issued. All times are from the machine's monotonic clock,
            which is the same for all ranks.
        wait_ns: The time at which the rank began to wait for the call; None if it never did.
        end_ns: The time at which its Work had finished; None if no end was recorded.
        where: The learner's line.
        callers: The lines of the learner's functions that led to it, the nearest first.
        before: The values of the input tensors, in the format of `summarize`; "" unless a reader will step
            through the run.
        after: The values of the resulting tensors, after the Work had finished, in the same format.
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
    callers: tuple[Place, ...] = ()
    error: str = ""
    before: str = ""
    after: str = ""

    @property
    def path(self) -> tuple[tuple[str, int], ...]:
        """The call's line and the lines of its callers, each with its file; empty if unknown."""
        places = (self.where, *self.callers) if self.where else ()
        return tuple((place.file, place.line) for place in places)

    @property
    def is_collective(self) -> bool:
        return self.op in COLLECTIVES

    @property
    def finished(self) -> bool:
        return self.end_ns is not None and not self.error


@dataclass(frozen=True, slots=True)
class Message:
    """A send and its recv. `recv` is None if the message has not been received."""

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
    """A group's n-th collective: the call of each member that took part in it."""

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
    # Number of events that were dropped because they exceeded the limit of a run's trace.
    dropped: int = 0
    # Global ranks of each process group over gloo that existed at the end, used or not.
    groups: tuple[tuple[int, ...], ...] = ()
    # The ranks that ran, if the rest of the world was imagined; empty for a real run.
    imagined: tuple[int, ...] = ()
    # Number of events that are unmatched calls of earlier cells. A diagnosis needs them, but the reader's
    # trace does not contain them.
    earlier: int = 0
    # The host of each rank; empty if all ran on this machine.
    hosts: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    @property
    def ranks(self) -> Sequence[int]:
        """The ranks that ran, in order."""
        return self.imagined or range(self.world_size)

    def select(self, keep: Callable[[Event], bool]) -> Trace:
        """Return the trace of the events for which `keep` is true."""
        return replace(self, events=tuple(e for e in self.events if keep(e)))

    @property
    def by_host(self) -> dict[str, list[int]]:
        """The ranks of each host, in rank order; empty if all ran on this machine."""
        ranks_by_host: dict[str, list[int]] = {}
        for rank, host in enumerate(self.hosts):
            ranks_by_host.setdefault(host, []).append(rank)
        return ranks_by_host

    def between_hosts(self, ranks: Iterable[int]) -> bool:
        """Return whether these ranks run on more than one host."""
        # A rank may pass a peer that does not exist.
        return len({self.hosts[rank] for rank in ranks if 0 <= rank < len(self.hosts)}) > 1

    def of(self, rank: int) -> tuple[Event, ...]:
        """Return the events of one rank, in the order of issue."""
        return tuple(event for event in self.events if event.rank == rank)

    def between(self, bounds: Sequence[tuple[int, int]]) -> Trace:
        """Return the trace of the events with first <= seq < last, where bounds[rank] = (first, last)."""
        return self.select(lambda e: bounds[e.rank][0] <= e.seq < bounds[e.rank][1])

    @property
    def calls(self) -> Trace:
        """The communication calls, without spans."""
        return self.select(lambda e: e.op != "span")

    @property
    def spans(self) -> Trace:
        """The spans that the ranks recorded around their work, without communication calls."""
        return self.select(lambda e: e.op == "span")

    def messages(self) -> tuple[Message, ...]:
        """Pair each send with its recv.

        Between two ranks of a group, messages with the same tag are received in the order in which they were
        sent.
        """
        waiting: dict[tuple[str, int | None, int, int], list[Event]] = defaultdict(list)
        # A receive from any rank has no peer until it has ended.
        for event in self.events:
            if event.op == "recv":
                waiting[event.group, event.peer, event.rank, event.tag].append(event)
        pairs = []
        for event in self.events:
            if event.op == "send" and event.peer is not None:
                # gloo keeps only the order of messages that have the same tag, between the same two ranks.
                queue = waiting[event.group, event.rank, event.peer, event.tag]
                pairs.append(Message(event, queue.pop(0) if queue else None))
        return tuple(pairs)

    def collectives(self) -> tuple[Collective, ...]:
        """Pair collectives: the n-th collectives that the members call on a group belong together."""
        counts: dict[tuple[str, int], int] = defaultdict(int)
        met: dict[tuple[str, tuple[int, ...], int], list[Event]] = defaultdict(list)
        for event in self.events:
            if event.is_collective:
                # Pair by the order of the calls, as backends do, because messages do not contain their
                # collective's name.
                index = counts[event.group, event.rank]
                counts[event.group, event.rank] += 1
                met[event.group, event.group_ranks, index].append(event)
        collectives = [
            Collective(group, ranks, index, tuple(sorted(calls, key=lambda e: e.rank)))
            for (group, ranks, index), calls in met.items()
        ]
        return tuple(sorted(collectives, key=lambda m: min(e.start_ns for e in m.calls)))


@dataclass(frozen=True, slots=True)
class CallWait:
    """A rank waiting in a recorded call, and the ranks that must act before the call can finish.

    handling: the exception that its `except` or `finally` block is handling; "" if there is none.
    """

    rank: int
    event: Event
    waits_for: tuple[int, ...] = ()
    handling: str = ""

    @property
    def state(self) -> str:
        return "blocked"

    @property
    def call(self) -> str:
        return self.event.call


@dataclass(frozen=True, slots=True)
class OtherWait:
    """A rank outside of recorded calls.

    state: a description of its activity ("has returned", "in its own code at cell 5, line 9", ...).
    handling: as for a `CallWait`.
    """

    rank: int
    state: str
    waits_for: tuple[int, ...] = ()
    handling: str = ""

    @property
    def event(self) -> None:
        return None

    @property
    def call(self) -> str:
        return ""


Wait = CallWait | OtherWait
"""One rank of a stuck world: its call or state, and the ranks for which it waits."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reason why no rank can continue.

    Attributes:
        kind: "cycle", "mismatched_collectives", "different_shapes", "rank_left", "skipped_backward",
            "never_waited" (both ends of a transfer were called, but one end's Work is never waited for),
            "unmatched" (sends and receives that do not match), "missing_key" (a key of a store is never set),
            "file_lock" (a rank waits for a file lock whose holder cannot continue), or "stuck".
        summary: The ranks' actions leading to the deadlock, in one sentence.
        advice: The reader's next step.
        waits: The wait of each rank, in rank order.
        guilty: The ranks to look at first.
    """

    kind: str
    summary: str
    advice: str
    waits: tuple[Wait, ...]
    guilty: tuple[int, ...] = ()
