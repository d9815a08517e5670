"""Puts the records that ranks write into a `Trace`, while they run.

The launcher feeds it. A rank may write false or broken records; that costs its own trace.

| record                                                                   | says                        |
|--------------------------------------------------------------------------|-----------------------------|
| ["site", id, op, call, [file, line, function] or null]                   | where calls come from       |
| ["group", name, ranks]                                                   | who belongs to a group      |
| ["groups", [name, ranks], ...]                                           | which are there at the end  |
| ["call", seq, site, group, when, nbytes, dtype, shapes, {peer, root, …}] | a call was made             |
| ["wait", seq, when]                                                      | its rank begins to wait     |
| ["end", seq, when, error, source]                                        | its Work has finished       |
| ["held", seq, before or null, after or null]                             | what was in its tensors     |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from helpers.trace.events import COLLECTIVES, Event, Place, Trace

MAX_EVENTS = 50_000
MAX_SITES = 10_000
"""Lines of code, for each rank: to find what stands on one takes a tenth of a millisecond."""
MAX_GROUPS = 1_000
_OPS = COLLECTIVES | {"send", "recv", "span"}
_TEXT = 200
_MOST_NONSENSE = 200_000
"""Lines of one rank that are not records, after which its others are counted, not read."""
_WRONG = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)
"""What a record that is none provokes when it is read."""


@dataclass(slots=True)
class _Site:
    op: str
    call: str
    where: Place | None


@dataclass(slots=True)
class _Call:
    """A call as far as it is known: made into an `Event` when somebody asks."""

    rank: int
    seq: int
    site: _Site
    group: str
    members: tuple[int, ...]
    start_ns: int
    about: list[Any]
    """nbytes, dtype, shapes and a dict with the rest, as the rank wrote them"""
    wait_ns: int | None = None
    end_ns: int | None = None
    error: str = ""
    peer: int | None = None
    """Who an any-source receive turned out to have received from."""
    before: str = ""
    after: str = ""

    @property
    def asynchronous(self) -> bool:
        more = self.about[3] if len(self.about) > 3 else None
        return isinstance(more, dict) and bool(more.get("asynchronous", False))

    def event(self) -> Event:
        nbytes, dtype, shapes, more = self.about
        peer = _rank(more.get("peer"))
        return Event(
            self.rank,
            self.seq,
            self.site.op,
            self.site.call,
            self.group,
            self.members,
            peer=self.peer if peer is None else peer,
            root=_rank(more.get("root")),
            tag=int(more.get("tag", 0)),
            nbytes=max(0, int(nbytes)),
            dtype=str(dtype)[:20],
            shapes=tuple([tuple([int(n) for n in shape[:10]]) for shape in shapes[:16]]),
            reduce_op=str(more.get("reduce_op", ""))[:20],
            asynchronous=bool(more.get("asynchronous", False)),
            start_ns=self.start_ns,
            wait_ns=self.wait_ns,
            end_ns=self.end_ns,
            where=self.site.where,
            error=self.error,
            before=self.before,
            after=self.after,
        )


@dataclass
class Collector:
    """Calls of all ranks of one task, as far as they are known.

    place_of turns what a rank says about a line into a `Place` with the reader's name of the cell.
    """

    world_size: int
    place_of: Callable[[str, int, str], Place]
    dropped: int = 0
    changes: int = 0
    """Grows with every record: a watcher sees whether anything has happened."""
    _calls: list[dict[int, _Call]] = field(default_factory=list)
    _unfinished: list[dict[int, _Call]] = field(default_factory=list)
    _sites: dict[tuple[int, int], _Site] = field(default_factory=dict)
    _groups: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    _places: dict[tuple[str, int, str], Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._nonsense = [0] * self.world_size
        self._left: list[dict[str, tuple[int, ...]]] = [{} for _ in range(self.world_size)]
        self._calls = [{} for _ in range(self.world_size)]
        self._unfinished = [{} for _ in range(self.world_size)]

    def feed(self, rank: int, lines: Sequence[bytes]) -> None:
        """Take the lines that one rank has written; ignore what is not a record."""
        if not lines:
            return
        if self._nonsense[rank] > _MOST_NONSENSE:  # there are no more records to be had from it
            self.changes, self.dropped = self.changes + 1, self.dropped + len(lines)
            return
        try:
            records = json.loads(b"[" + b",".join(lines) + b"]")  # all at once: six times faster
        except (ValueError, RecursionError):
            records = [_parsed(line) for line in lines]
        for record in records:
            self.changes += 1
            try:
                _TAKE[record[0]](self, rank, *record[1:])
            except _WRONG:
                self.dropped += 1
                self._nonsense[rank] += 1

    def next(self) -> Collector:
        """Return an empty collector for the same ranks' next task: their groups and sites stay known."""
        return Collector(self.world_size, self.place_of, _sites=self._sites, _groups=self._groups)

    def trace(self) -> Trace:
        """Return what is known now."""
        events = []
        for calls in self._calls:
            for seq in sorted(calls):
                try:
                    events.append(calls[seq].event())
                except _WRONG:
                    self.dropped += 1
        groups = {name: ranks for said in self._left for name, ranks in said.items()}
        return Trace(self.world_size, tuple(events), self.dropped, tuple(groups.values()))

    def unfinished(self, rank: int) -> tuple[Event, ...]:
        """Return the calls of a rank whose Work has not been seen to finish, oldest first."""
        events = []
        for call in self._unfinished[rank].values():
            try:
                events.append(call.event())
            except _WRONG:
                self.dropped += 1
        return tuple(events)

    def blocked_in(self, rank: int) -> Event | None:
        """Return the call that the rank waits for now: the last one it waits for, or is still inside."""
        for call in reversed(self._unfinished[rank].values()):
            if call.wait_ns is not None or not call.asynchronous:
                try:
                    return call.event() if call.site.op != "span" else None
                except _WRONG:
                    self.dropped += 1
        return None

    def place(self, said: Any) -> Place | None:
        """Turn [file, line, function] into a `Place`, once for each line."""
        if not isinstance(said, list) or len(said) != 3 or not isinstance(said[1], int):
            return None
        key = (str(said[0])[:_TEXT], int(said[1]), str(said[2])[:_TEXT])
        if key not in self._places:
            self._places[key] = self.place_of(*key)
        return self._places[key]

    def _group(self, rank: int, name: str, ranks: list[int]) -> None:
        self._groups[rank, str(name)[:_TEXT]] = tuple(int(r) for r in ranks[: self.world_size])

    def _groups_left(self, rank: int, *groups: tuple[str, list[int]]) -> None:
        self._left[rank] = {
            str(name)[:_TEXT]: tuple(int(r) for r in ranks[: self.world_size])
            for name, ranks in groups[:MAX_GROUPS]
        }

    def _site(self, rank: int, number: int, op: str, call: str, said: Any) -> None:
        if op not in _OPS or not 0 <= number < MAX_SITES:
            raise ValueError(op, number)
        self._sites[rank, int(number)] = _Site(op, str(call)[:_TEXT], self.place(said))

    def _call(self, rank: int, seq: int, site: int, group: str, start: int, *about: Any) -> None:
        calls, found = self._calls[rank], self._sites[rank, site]
        if len(calls) >= MAX_EVENTS or seq in calls:
            self.dropped += 1
            return
        if found.op == "span":
            members: tuple[int, ...] = ()
        else:
            members = self._groups.get((rank, group)) or tuple(range(self.world_size))
        call = _Call(rank, int(seq), found, str(group)[:_TEXT], members, int(start), list(about))
        calls[call.seq] = self._unfinished[rank][call.seq] = call

    def _wait(self, rank: int, seq: int, when: int) -> None:
        call = self._calls[rank][seq]
        if call.wait_ns is None:
            call.wait_ns = int(when)

    def _end(self, rank: int, seq: int, when: int, error: str, source: int | None) -> None:
        call = self._calls[rank][seq]
        if source is not None and 0 <= int(source) < len(call.members):
            call.peer = call.members[int(source)]
        self._unfinished[rank].pop(seq, None)
        call.end_ns, call.error = int(when), str(error)[:500]

    def _held(self, rank: int, seq: int, before: str | None, after: str | None) -> None:
        call = self._calls[rank][seq]
        call.before = call.before if before is None else str(before)[:_TEXT]
        call.after = call.after if after is None else str(after)[:_TEXT]


_TAKE: dict[str, Callable[..., None]] = {
    "site": Collector._site,
    "group": Collector._group,
    "groups": Collector._groups_left,
    "call": Collector._call,
    "wait": Collector._wait,
    "end": Collector._end,
    "held": Collector._held,
}
"""The kinds of record that there are; no other word of a rank reaches the collector."""


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _rank(said: Any) -> int | None:
    return None if said is None else int(said)
