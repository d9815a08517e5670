"""Turn the ranks' records into a `Trace` during the run.

The launcher feeds the records to a collector. If a rank writes false or broken records, it can spoil only the
trace of its own run. A record is one line of JSON: an array that consists of its kind, followed by the fields
of the class for this kind.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import DecodeError, Struct, json

from helpers.trace.events import COLLECTIVES, MAX_EVENTS, MAX_UNWAITED, Event, Place, Trace
from helpers.trace.frames import MAX_CALLERS, FrameLine

# Maximum number of lines of code for each rank. Looking up the source of one line takes 0.1 ms.
MAX_SITES = 10_000
MAX_GROUPS = 1_000
_OPS = COLLECTIVES | {"send", "recv", "span"}
_MAX_TEXT = 200
# If the last calls are kept, fully ended calls are dropped after this number of calls by one rank.
KEPT_CALLS = MAX_EVENTS // 2
# Number of one rank's invalid lines after which its further lines are counted but not read.
_MAX_BAD_LINES = 200_000


class _SiteRecord(Struct, array_like=True, tag="site"):
    """A call's place.

    where: the learner's line, if any. by: the file of torch between the line and the call, if any. callers:
    the lines of the learner's functions that led to it, the nearest first.
    """

    id: int
    op: str
    call: str
    where: FrameLine | None
    by: str = ""
    callers: list[FrameLine] = []

    def add_to(self, collector: Collector, rank: int) -> None:
        # Matching has separate rules for each kind of op, and an unknown op would break them.
        if self.op not in _OPS or not 0 <= self.id < MAX_SITES:
            raise ValueError(self)
        where = collector.place(self.where) if self.where else None
        callers = tuple([collector.place(line) for line in self.callers[:MAX_CALLERS]])
        collector._sites[rank, self.id] = _CallSite(
            self.op, self.call[:_MAX_TEXT], where, self.by[:_MAX_TEXT], callers
        )


class _GroupRecord(Struct, array_like=True, tag="group"):
    """The members of a group."""

    name: str
    ranks: list[int]

    def add_to(self, collector: Collector, rank: int) -> None:
        collector._groups[rank, self.name[:_MAX_TEXT]] = tuple(self.ranks[: collector.max_members])


class _GroupsRecord(Struct, array_like=True, tag="groups"):
    """The groups that exist at the end of the task."""

    groups: list[tuple[str, list[int]]]

    def add_to(self, collector: Collector, rank: int) -> None:
        groups = self.groups[:MAX_GROUPS]
        collector._final_groups[rank] = {
            n[:_MAX_TEXT]: tuple(ranks[: collector.max_members]) for n, ranks in groups
        }


class _CallDetails(Struct):
    """Optional fields of a call."""

    peer: int | None = None
    root: int | None = None
    tag: int = 0
    reduce_op: str = ""
    asynchronous: bool = False
    gives: list[int] = []
    takes: list[int] = []


class _CallRecord(Struct, array_like=True, tag="call"):
    """A call made at this site."""

    seq: int
    site: int
    group: str
    start_ns: int
    nbytes: int
    dtype: str
    shapes: list[list[int]]
    details: _CallDetails

    def add_to(self, collector: Collector, rank: int) -> None:
        calls, call_site = collector._calls[rank], collector._sites[rank, self.site]
        # A repeated number would overwrite an earlier call.
        if len(calls) >= MAX_EVENTS or self.seq in calls:
            collector.dropped += 1
            return
        all_ranks = tuple(range(collector.max_members))
        members = collector._groups.get((rank, self.group)) or all_ranks
        call_members = () if call_site.op == "span" else members
        call = _Call(rank, self, call_site, call_members, self.start_ns - collector.clocks[rank])
        calls[self.seq] = collector._unfinished[rank][self.seq] = call


class _WaitRecord(Struct, array_like=True, tag="wait"):
    """The beginning of a rank's wait for a call."""

    seq: int
    when_ns: int

    def add_to(self, collector: Collector, rank: int) -> None:
        call = collector.call(rank, self.seq)
        if call.wait_ns is None:
            call.wait_ns = self.when_ns - collector.clocks[rank]


class _EndRecord(Struct, array_like=True, tag="end"):
    """The end of a call's Work. source: the sender of a received message, as its index in the group."""

    seq: int
    when_ns: int
    error: str
    source: int | None

    def add_to(self, collector: Collector, rank: int) -> None:
        call = collector.call(rank, self.seq)
        if self.source is not None and 0 <= self.source < len(call.members):
            call.peer = call.members[self.source]
        collector._unfinished[rank].pop(self.seq, None)
        call.end_ns, call.error = self.when_ns - collector.clocks[rank], self.error[:500]


class _ValuesRecord(Struct, array_like=True, tag="held"):
    """The values in a call's tensors, before and after it."""

    seq: int
    before: str | None
    after: str | None

    def add_to(self, collector: Collector, rank: int) -> None:
        call = collector.call(rank, self.seq)
        call.before = call.before if self.before is None else self.before[:_MAX_TEXT]
        call.after = call.after if self.after is None else self.after[:_MAX_TEXT]


class _UnwaitedRecord(Struct, array_like=True, tag="unwaited"):
    """Asynchronous calls of this task whose Work was dropped without any method call."""

    seqs: list[int]

    def add_to(self, collector: Collector, rank: int) -> None:
        collector._unwaited[rank] += [
            seq for seq in self.seqs[:MAX_UNWAITED] if seq in collector._calls[rank]
        ]


# All kinds of records. Any other line of a rank is ignored.
_Record = (
    _SiteRecord
    | _GroupRecord
    | _GroupsRecord
    | _CallRecord
    | _WaitRecord
    | _EndRecord
    | _ValuesRecord
    | _UnwaitedRecord
)
_RECORD_DECODER, _RECORDS_DECODER = json.Decoder(_Record), json.Decoder(list[_Record])


@dataclass(frozen=True, slots=True)
class _CallSite:
    op: str
    call: str
    where: Place | None
    by: str
    callers: tuple[Place, ...]


@dataclass(slots=True)
class _Call:
    """The known fields of a call, which is turned into an `Event` on demand."""

    rank: int
    record: _CallRecord
    source: _CallSite
    members: tuple[int, ...]
    start_ns: int
    wait_ns: int | None = None
    end_ns: int | None = None
    error: str = ""
    peer: int | None = None  # for a receive from any source, the sender, once known
    before: str = ""
    after: str = ""

    def event(self) -> Event:
        record, details = self.record, self.record.details
        return Event(
            self.rank,
            record.seq,
            self.source.op,
            self.source.call,
            record.group[:_MAX_TEXT],
            self.members,
            peer=self.peer if details.peer is None else details.peer,
            root=details.root,
            tag=details.tag,
            nbytes=max(0, record.nbytes),
            dtype=record.dtype[:20],
            shapes=tuple([tuple(shape[:10]) for shape in record.shapes[:16]]),
            reduce_op=details.reduce_op[:20],
            gives=tuple(details.gives[: len(self.members)]),
            takes=tuple(details.takes[: len(self.members)]),
            by=self.source.by,
            asynchronous=details.asynchronous,
            start_ns=self.start_ns,
            wait_ns=self.wait_ns,
            end_ns=self.end_ns,
            where=self.source.where,
            callers=self.source.callers,
            error=self.error,
            before=self.before,
            after=self.after,
        )


@dataclass
class Collector:
    """The known calls of all ranks in one task.

    Attributes:
        place_of: A function that returns a `Place`, with the reader's name of the cell, for a line reported
            by a rank.
        max_members: The maximum size of a group; by default, the number of ranks.
        clocks: Each rank's clock minus the launcher's clock, in ns; by default 0.
        left_out: Number of calls dropped by `drop_ended_calls`.
        change_count: A number that grows with every record, so that the detector notices any activity.
    """

    world_size: int
    place_of: Callable[[str, int, str], Place]
    max_members: int = 0
    clocks: Sequence[int] = ()
    dropped: int = 0
    left_out: int = 0
    change_count: int = 0
    _sites: dict[tuple[int, int], _CallSite] = field(default_factory=dict)
    _groups: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    _places: dict[FrameLine, Place] = field(default_factory=dict)
    _earlier_calls: list[dict[int, _Call]] = field(default_factory=list)

    def __post_init__(self) -> None:
        ranks = range(self.world_size)
        self.max_members = self.max_members or self.world_size
        self.clocks = self.clocks or [0 for _ in ranks]
        self._bad_line_counts = [0 for _ in ranks]
        # The number of each rank's first call that was not dropped by `drop_ended_calls`.
        self._kept_from = [0 for _ in ranks]
        self._final_groups: list[dict[str, tuple[int, ...]]] = [{} for _ in ranks]
        self._calls: list[dict[int, _Call]] = [{} for _ in ranks]
        self._unwaited: list[list[int]] = [[] for _ in ranks]
        self._earlier_calls = self._earlier_calls or [{} for _ in ranks]
        self._unfinished: list[dict[int, _Call]] = [
            {seq: call for seq, call in calls.items() if call.end_ns is None}
            for calls in self._earlier_calls
        ]

    def feed(self, rank: int, lines: Sequence[bytes]) -> None:
        """Read lines written by one rank, and count the invalid lines."""
        if not lines:
            return
        if self._bad_line_counts[rank] > _MAX_BAD_LINES:  # Stop parsing the rank's lines.
            self.change_count, self.dropped = self.change_count + 1, self.dropped + len(lines)
            return
        records: list[Any]
        try:
            # Decoding all lines at once is faster than decoding them one by one.
            records = _RECORDS_DECODER.decode(b"[" + b",".join(lines) + b"]")
        except (DecodeError, RecursionError):  # One of the lines is bad.
            records = [_parse_record(line) for line in lines]
        for record in records:
            self.change_count += 1
            try:
                record.add_to(self, rank)
            except (ValueError, KeyError, AttributeError):
                if getattr(record, "seq", math.inf) < self._kept_from[rank]:
                    continue  # the record is about a call that was dropped because it had ended
                # The record names an unknown site, call or kind.
                self.dropped += 1
                self._bad_line_counts[rank] += 1

    def drop_ended_calls(self) -> None:
        """If a rank has made very many calls, drop calls that have ended on all their ranks.

        Because collectives and messages are paired by their order, either all calls of a pair are dropped, or
        none.
        """
        if max(map(len, self._calls)) < KEPT_CALLS:
            return
        trace = self.trace()
        ended = [event for event in trace.events if event.op == "span" and event.end_ns]
        for collective in trace.collectives():
            if collective.complete and all(call.end_ns for call in collective.calls):
                ended += collective.calls
        for message in trace.messages():
            if message.recv is not None and message.send.end_ns and message.recv.end_ns:
                ended += [message.send, message.recv]
        for event in ended:
            del self._calls[event.rank][event.seq]
            self._kept_from[event.rank] = max(self._kept_from[event.rank], event.seq + 1)
        self.left_out += len(ended)

    def next_collector(self, clocks: Sequence[int] = ()) -> Collector:
        """Return an empty collector for the same ranks' next task, with the same groups and sites."""
        return Collector(
            self.world_size,
            self.place_of,
            self.max_members,
            clocks,
            _sites=self._sites,
            _groups=self._groups,
            _earlier_calls=self._unmatched_calls(),
        )

    def _unmatched_calls(self) -> list[dict[int, _Call]]:
        """Return each rank's calls without a counterpart, because the next task may wait for them."""
        unmatched: list[dict[int, _Call]] = [{} for _ in self._calls]
        if self.dropped or not (any(self._unfinished) or self._have_uneven_counts()):
            return unmatched  # The missing records might contain the calls' counterparts.
        trace = self.trace_for_diagnosis()
        matched = {
            (call.rank, call.seq)
            for collective in trace.collectives()
            if collective.complete
            for call in collective.calls
        }
        for message in trace.messages():
            if message.recv is not None:
                matched |= {(end.rank, end.seq) for end in (message.send, message.recv)}
        for event in trace.calls:
            if (event.rank, event.seq) not in matched and not event.error:
                unmatched[event.rank][event.seq] = self.call(event.rank, event.seq)
        return unmatched

    def _have_uneven_counts(self) -> bool:
        """Return whether the members of a group have called different numbers of collectives."""
        if any(self._earlier_calls):
            return True
        counts: dict[tuple[str, tuple[int, ...]], Counter[int]] = defaultdict(Counter)
        for rank, calls in enumerate(self._calls):
            for call in calls.values():
                if call.source.op in COLLECTIVES:
                    counts[call.record.group, call.members][rank] += 1
        return any(
            len({count[rank] for rank in members}) > 1 for (_, members), count in counts.items()
        )

    def call(self, rank: int, seq: int) -> _Call:
        """Return a call of this task, or an unmatched call of an earlier task. Otherwise raise KeyError."""
        return self._calls[rank].get(seq) or self._earlier_calls[rank][seq]

    def trace_for_diagnosis(self) -> Trace:
        """Return the trace for a diagnosis, which includes unmatched calls of earlier tasks."""
        before = [calls[seq].event() for calls in self._earlier_calls for seq in sorted(calls)]
        trace = self.trace()
        events = sorted([*before, *trace.events], key=lambda event: (event.rank, event.seq))
        return replace(trace, events=tuple(events), earlier=len(before))

    def trace(self, hosts: tuple[str, ...] = ()) -> Trace:
        """Return the trace so far. hosts: the host of each rank; empty if all are on this machine."""
        events = [calls[seq].event() for calls in self._calls for seq in sorted(calls)]
        groups = {
            name: ranks for rank_groups in self._final_groups for name, ranks in rank_groups.items()
        }
        return Trace(
            self.world_size, tuple(events), self.dropped, tuple(groups.values()), hosts=hosts
        )

    def unwaited_calls(self) -> list[Event]:
        """Return the asynchronous calls whose Work was dropped without any method call."""
        return [
            self._calls[rank][seq].event()
            for rank, seqs in enumerate(self._unwaited)
            for seq in seqs[:MAX_UNWAITED]
        ]

    def unfinished_calls(self, rank: int) -> tuple[Event, ...]:
        """Return a rank's calls without a recorded end, oldest first."""
        return tuple(call.event() for call in self._unfinished[rank].values())

    def blocking_call(self, rank: int) -> Event | None:
        """Return the rank's blocking call: the last call that it waits for or has not left."""
        for call in reversed(self._unfinished[rank].values()):
            if call.wait_ns is not None or not call.record.details.asynchronous:
                return call.event() if call.source.op != "span" else None
        return None

    def place(self, line: FrameLine) -> Place:
        """Return the `Place` of a line reported by a rank. Each line is looked up once."""
        key = (line[0][:_MAX_TEXT], line[1], line[2][:_MAX_TEXT])
        if key not in self._places:
            self._places[key] = self.place_of(*key)
        return self._places[key]


def _parse_record(line: bytes) -> Any:
    try:
        return _RECORD_DECODER.decode(line)
    except (DecodeError, RecursionError):
        return None
