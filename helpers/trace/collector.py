"""Turn the records that ranks write into a `Trace`, while they run.

The launcher feeds it. A rank may write false or broken records, which only spoils its own trace. A record is
one line of JSON, an array: its kind, followed by the fields of the class for that kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import DecodeError, Struct, json

from helpers.trace.events import COLLECTIVES, Event, Place, Trace
from helpers.trace.frames import At

MAX_EVENTS = 50_000
# Lines of code for each rank. Looking up the source of one line takes 0.1 ms.
MAX_SITES = 10_000
MAX_GROUPS = 1_000
_OPS = COLLECTIVES | {"send", "recv", "span"}
_TEXT = 200
# After this many lines of one rank that are not records, its later lines are counted but not read.
_MOST_NONSENSE = 200_000


class _Site(Struct, array_like=True, tag="site"):
    """The place of a call. where: the learner's line, if any. by: the file of torch in between, if any."""

    id: int
    op: str
    call: str
    where: At | None
    by: str = ""

    def take(self, known: Collector, rank: int) -> None:
        # Matching has its own rules for each kind of op, and an unknown one would break them.
        if self.op not in _OPS or not 0 <= self.id < MAX_SITES:
            raise ValueError(self)
        where = known.place(self.where) if self.where else None
        known._sites[rank, self.id] = _Source(self.op, self.call[:_TEXT], where, self.by[:_TEXT])


class _Group(Struct, array_like=True, tag="group"):
    """The members of a group."""

    name: str
    ranks: list[int]

    def take(self, known: Collector, rank: int) -> None:
        known._groups[rank, self.name[:_TEXT]] = tuple(self.ranks[: known.most_members])


class _Groups(Struct, array_like=True, tag="groups"):
    """The groups that exist when the task ends."""

    groups: list[tuple[str, list[int]]]

    def take(self, known: Collector, rank: int) -> None:
        some = self.groups[:MAX_GROUPS]
        known._left[rank] = {n[:_TEXT]: tuple(ranks[: known.most_members]) for n, ranks in some}


class _About(Struct):
    """Fields that only some calls have."""

    peer: int | None = None
    root: int | None = None
    tag: int = 0
    reduce_op: str = ""
    asynchronous: bool = False
    gives: list[int] = []
    takes: list[int] = []


class _Called(Struct, array_like=True, tag="call"):
    """A call was made at this site."""

    seq: int
    site: int
    group: str
    start_ns: int
    nbytes: int
    dtype: str
    shapes: list[list[int]]
    about: _About

    def take(self, known: Collector, rank: int) -> None:
        calls, source = known._calls[rank], known._sites[rank, self.site]
        # A repeated number would overwrite an earlier call.
        if len(calls) >= MAX_EVENTS or self.seq in calls:
            known.dropped += 1
            return
        everyone = tuple(range(known.most_members))
        members = known._groups.get((rank, self.group)) or everyone
        own = () if source.op == "span" else members
        call = _Call(rank, self, source, own, self.start_ns - known.clocks[rank])
        calls[self.seq] = known._unfinished[rank][self.seq] = call


class _Waits(Struct, array_like=True, tag="wait"):
    """The rank begins to wait for a call."""

    seq: int
    when_ns: int

    def take(self, known: Collector, rank: int) -> None:
        call = known.call(rank, self.seq)
        if call.wait_ns is None:
            call.wait_ns = self.when_ns - known.clocks[rank]


class _Ended(Struct, array_like=True, tag="end"):
    """A call's Work has finished. source: the sender of a received message, as its index in the group."""

    seq: int
    when_ns: int
    error: str
    source: int | None

    def take(self, known: Collector, rank: int) -> None:
        call = known.call(rank, self.seq)
        if self.source is not None and 0 <= self.source < len(call.members):
            call.peer = call.members[self.source]
        known._unfinished[rank].pop(self.seq, None)
        call.end_ns, call.error = self.when_ns - known.clocks[rank], self.error[:500]


class _Held(Struct, array_like=True, tag="held"):
    """The values in a call's tensors, before and after it."""

    seq: int
    before: str | None
    after: str | None

    def take(self, known: Collector, rank: int) -> None:
        call = known.call(rank, self.seq)
        call.before = call.before if self.before is None else self.before[:_TEXT]
        call.after = call.after if self.after is None else self.after[:_TEXT]


# All kinds of record. Anything else that a rank writes is ignored.
_Record = _Site | _Group | _Groups | _Called | _Waits | _Ended | _Held
_ONE, _MANY = json.Decoder(_Record), json.Decoder(list[_Record])


@dataclass(frozen=True, slots=True)
class _Source:
    op: str
    call: str
    where: Place | None
    by: str


@dataclass(slots=True)
class _Call:
    """A call as far as it is known. It becomes an `Event` on demand."""

    rank: int
    made: _Called
    source: _Source
    members: tuple[int, ...]
    start_ns: int
    wait_ns: int | None = None
    end_ns: int | None = None
    error: str = ""
    peer: int | None = None  # the sender, once a receive from any source knows it
    before: str = ""
    after: str = ""

    def event(self) -> Event:
        made, about = self.made, self.made.about
        return Event(
            self.rank,
            made.seq,
            self.source.op,
            self.source.call,
            made.group[:_TEXT],
            self.members,
            peer=self.peer if about.peer is None else about.peer,
            root=about.root,
            tag=about.tag,
            nbytes=max(0, made.nbytes),
            dtype=made.dtype[:20],
            shapes=tuple([tuple(shape[:10]) for shape in made.shapes[:16]]),
            reduce_op=about.reduce_op[:20],
            gives=tuple(about.gives[: len(self.members)]),
            takes=tuple(about.takes[: len(self.members)]),
            by=self.source.by,
            asynchronous=about.asynchronous,
            start_ns=self.start_ns,
            wait_ns=self.wait_ns,
            end_ns=self.end_ns,
            where=self.source.where,
            error=self.error,
            before=self.before,
            after=self.after,
        )


@dataclass
class Collector:
    """The calls of all ranks of one task, as far as they are known.

    Attributes:
        place_of: Returns a `Place`, with the reader's name of the cell, for a line as a rank reports it.
        most_members: The maximum size of a group, by default all ranks.
        clocks: How far each rank's clock is ahead of the launcher's, in ns, by default 0.
        changes: Grows with every record, so that the detector sees whether anything has happened.
    """

    world_size: int
    place_of: Callable[[str, int, str], Place]
    most_members: int = 0
    clocks: Sequence[int] = ()
    dropped: int = 0
    changes: int = 0
    _sites: dict[tuple[int, int], _Source] = field(default_factory=dict)
    _groups: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    _places: dict[At, Place] = field(default_factory=dict)
    _earlier: list[dict[int, _Call]] = field(default_factory=list)

    def __post_init__(self) -> None:
        ranks = range(self.world_size)
        self.most_members = self.most_members or self.world_size
        self.clocks = self.clocks or [0 for _ in ranks]
        self._nonsense = [0 for _ in ranks]
        self._left: list[dict[str, tuple[int, ...]]] = [{} for _ in ranks]
        self._calls: list[dict[int, _Call]] = [{} for _ in ranks]
        self._earlier = self._earlier or [{} for _ in ranks]
        self._unfinished: list[dict[int, _Call]] = [
            {seq: call for seq, call in calls.items() if call.end_ns is None}
            for calls in self._earlier
        ]

    def feed(self, rank: int, lines: Sequence[bytes]) -> None:
        """Read lines that one rank has written, and count those that are not records."""
        if not lines:
            return
        if self._nonsense[rank] > _MOST_NONSENSE:  # Do not even parse its lines any more.
            self.changes, self.dropped = self.changes + 1, self.dropped + len(lines)
            return
        records: list[Any]
        try:
            # Decoding all lines at once is faster than one by one.
            records = _MANY.decode(b"[" + b",".join(lines) + b"]")
        except (DecodeError, RecursionError):  # One of the lines is bad.
            records = [_parsed(line) for line in lines]
        for record in records:
            self.changes += 1
            try:
                record.take(self, rank)
            except (ValueError, KeyError, AttributeError):
                # The record names an unknown site, call or kind.
                self.dropped += 1
                self._nonsense[rank] += 1

    def next(self, clocks: Sequence[int] = ()) -> Collector:
        """Return an empty collector for the same ranks' next task, which keeps their groups and sites."""
        return Collector(
            self.world_size,
            self.place_of,
            self.most_members,
            clocks,
            _sites=self._sites,
            _groups=self._groups,
            _earlier=self._unanswered(),
        )

    def _unanswered(self) -> list[dict[int, _Call]]:
        """Return each rank's calls without a counterpart, because the next task may wait for them."""
        none: list[dict[int, _Call]] = [{} for _ in self._calls]
        if self.dropped or not (any(self._unfinished) or self._is_uneven()):
            return none  # If records are missing, the calls' counterparts may be among them.
        trace = self.known()
        answered = {
            (call.rank, call.seq)
            for collective in trace.collectives()
            if collective.complete
            for call in collective.calls
        }
        for message in trace.messages():
            if message.recv is not None:
                answered |= {(end.rank, end.seq) for end in (message.send, message.recv)}
        for event in trace.calls:
            if (event.rank, event.seq) not in answered and not event.error:
                none[event.rank][event.seq] = self.call(event.rank, event.seq)
        return none

    def _is_uneven(self) -> bool:
        """Return whether the members of a group have called different numbers of collectives."""
        if any(self._earlier):
            return True
        counts: dict[tuple[str, tuple[int, ...]], Counter[int]] = defaultdict(Counter)
        for rank, calls in enumerate(self._calls):
            for call in calls.values():
                if call.source.op in COLLECTIVES:
                    counts[call.made.group, call.members][rank] += 1
        return any(
            len({count[rank] for rank in members}) > 1 for (_, members), count in counts.items()
        )

    def call(self, rank: int, seq: int) -> _Call:
        """Return a call of this task, or one without a counterpart of an earlier task, or raise KeyError."""
        return self._calls[rank].get(seq) or self._earlier[rank][seq]

    def known(self) -> Trace:
        """Return the trace for a diagnosis, which includes calls of earlier tasks without a counterpart."""
        before = [calls[seq].event() for calls in self._earlier for seq in sorted(calls)]
        trace = self.trace()
        events = sorted([*before, *trace.events], key=lambda event: (event.rank, event.seq))
        return replace(trace, events=tuple(events), earlier=len(before))

    def trace(self, hosts: tuple[str, ...] = ()) -> Trace:
        """Return what is known now. hosts: the host of each rank; empty if all are on this machine."""
        events = [calls[seq].event() for calls in self._calls for seq in sorted(calls)]
        groups = {name: ranks for said in self._left for name, ranks in said.items()}
        return Trace(
            self.world_size, tuple(events), self.dropped, tuple(groups.values()), hosts=hosts
        )

    def unfinished(self, rank: int) -> tuple[Event, ...]:
        """Return the calls of a rank whose Work is not known to have finished, oldest first."""
        return tuple(call.event() for call in self._unfinished[rank].values())

    def blocked_in(self, rank: int) -> Event | None:
        """Return the call that the rank is blocked in: the last one that it waits for or is inside."""
        for call in reversed(self._unfinished[rank].values()):
            if call.wait_ns is not None or not call.made.about.asynchronous:
                return call.event() if call.source.op != "span" else None
        return None

    def place(self, said: At) -> Place:
        """Return the `Place` of a line that a rank reports; each line is looked up once."""
        key = (said[0][:_TEXT], said[1], said[2][:_TEXT])
        if key not in self._places:
            self._places[key] = self.place_of(*key)
        return self._places[key]


def _parsed(line: bytes) -> Any:
    try:
        return _ONE.decode(line)
    except (DecodeError, RecursionError):
        return None
