"""Puts the records that ranks send together into a `Trace`, while they run.

The launcher feeds it. A rank may lie in its records or send nonsense; that costs its own trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from helpers.trace.events import COLLECTIVES, Event, Place, Trace

MAX_EVENTS = 50_000
_OPS = COLLECTIVES | {"send", "recv", "span"}
_TEXT = 200


@dataclass
class Collector:
    """Events of all ranks of one launch, as far as they are known.

    place_of turns what a rank says about a line into a `Place` with the reader's name of the cell.
    """

    world_size: int
    place_of: Callable[[str, int, str], Place]
    dropped: int = 0
    changes: int = 0
    """Grows with every record: whoever watches sees whether anything moved."""
    _events: dict[tuple[int, int], Event] = field(default_factory=dict)
    _groups: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    _places: dict[tuple[str, int, str], Place] = field(default_factory=dict)
    _unfinished: dict[int, dict[int, Event]] = field(default_factory=dict)

    def feed(self, rank: int, record: Any) -> None:
        """Take one record of one rank; ignore what is not one."""
        self.changes += 1
        try:
            getattr(self, f"_{record[0]}")(rank, *record[1:])
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            self.dropped += 1

    def next(self) -> Collector:
        """Give an empty collector for the same ranks' next task: their groups stay known."""
        return Collector(self.world_size, self.place_of, _groups=self._groups)

    def trace(self) -> Trace:
        """Give what is known now."""
        ordered = sorted(self._events)
        return Trace(self.world_size, tuple(self._events[key] for key in ordered), self.dropped)

    def unfinished(self, rank: int) -> tuple[Event, ...]:
        """Give the calls of a rank whose Work has not been seen to finish, oldest first."""
        return tuple(self._unfinished.get(rank, {}).values())

    def blocked_in(self, rank: int) -> Event | None:
        """Give the call that the rank waits for now: the last one it waits for, or is still inside."""
        for event in reversed(self.unfinished(rank)):
            if event.wait_ns is not None or not event.asynchronous:
                return event if event.op != "span" else None
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

    def _call(
        self,
        rank: int,
        seq: int,
        op: str,
        call: str,
        group: str,
        said: Any,
        start: int,
        more: dict[str, Any],
    ) -> None:
        if (
            len(self._events) >= MAX_EVENTS * min(self.world_size, 4)
            or (rank, int(seq)) in self._events
        ):
            self.dropped += 1
            return
        if op not in _OPS:
            raise ValueError(op)
        members = self._groups.get((rank, group), tuple(range(self.world_size)))
        event = Event(
            rank,
            int(seq),
            op,
            str(call)[:_TEXT],
            str(group)[:_TEXT],
            members if op != "span" else (),
            peer=_rank(more.get("peer")),
            root=_rank(more.get("root")),
            tag=int(more.get("tag", 0)),
            nbytes=max(0, int(more.get("nbytes", 0))),
            dtype=str(more.get("dtype", ""))[:20],
            shapes=tuple(
                tuple(int(n) for n in shape[:10]) for shape in more.get("shapes", [])[:16]
            ),
            reduce_op=str(more.get("reduce_op", ""))[:20],
            asynchronous=bool(more.get("asynchronous", False)),
            start_ns=int(start),
            where=self.place(said),
        )
        self._events[rank, event.seq] = event
        self._unfinished.setdefault(rank, {})[event.seq] = event

    def _wait(self, rank: int, seq: int, when: int) -> None:
        event = self._events[rank, seq]
        if event.wait_ns is None:
            self._put(replace(event, wait_ns=int(when)))

    def _end(self, rank: int, seq: int, when: int, error: str, source: int | None) -> None:
        event = self._events[rank, seq]
        peer = event.peer
        if peer is None and source is not None and 0 <= int(source) < len(event.group_ranks):
            peer = event.group_ranks[int(source)]
        self._unfinished.get(rank, {}).pop(seq, None)
        self._put(replace(event, end_ns=int(when), error=str(error)[:500], peer=peer))

    def _put(self, event: Event) -> None:
        self._events[event.rank, event.seq] = event
        if event.seq in self._unfinished.get(event.rank, {}):
            self._unfinished[event.rank][event.seq] = event


def _rank(said: Any) -> int | None:
    return None if said is None else int(said)
