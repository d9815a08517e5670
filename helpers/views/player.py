"""A run that a reader can step through: the timeline's bars as data, and the page that plays them.

    Trace -> timeline_layout (rows) -> played() -> data -> player.js, in the reader's page

The page draws events in order, each with the same room, so that what takes microseconds can be
followed; a switch draws them to scale, as the picture has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.ranks.failures import Deadlock, RankTimeout, describe_wait
from helpers.ranks.run import RankFailure, Run
from helpers.trace.events import Event, Trace
from helpers.views.palette import KINDS, look_of
from helpers.views.picture import Seen, seen_in
from helpers.views.plain import one_line, short_bytes
from helpers.views.sequence import headline, label_of
from helpers.views.timeline_layout import Layout, lay_out

MOST_PLAYED = 40_000
"""Calls that a page is sent: 16 ranks with 2,000 each, and some room. The earliest are kept."""
PAGE = Path(__file__).with_name("player.js")


def played(what: Seen) -> dict[str, Any]:
    """Return a run, or what torch.profiler exported of one, as data for the page: plain JSON.

    Times are ns since the first event. Bars are columns of equal length, in the order of their starts;
    texts stand once in `texts`, columns hold their index. Raises TypeError as `timeline` does.
    """
    trace = seen_in(what)
    layout = lay_out(trace, most=MOST_PLAYED)
    bars = sorted(layout.bars, key=lambda bar: (bar.start_ns, bar.rank, bar.event.seq))
    index_of = {id(bar.event): index for index, bar in enumerate(bars)}
    texts = _Texts()
    columns = [
        (
            bar.rank,
            bar.row + (layout.span_rows if bar.event.op != "span" else 0),
            bar.start_ns,
            bar.wait_ns,
            bar.end_ns,
            KINDS.index(look_of(bar.event)),
            texts.number(label_of(bar.event)),
            texts.number(_about(bar.event)),
            _place(bar.event, texts),
            texts.number(bar.event.before),
            texts.number(bar.event.after),
        )
        for bar in bars
    ]
    return {
        "headline": headline(trace),
        "ranks": layout.world_size,
        "rows": layout.span_rows + layout.call_rows,
        "length": layout.length_ns,
        "left_out": layout.left_out,
        "kinds": [{"name": k.name, "color": k.color, "tint": k.tint} for k in KINDS],
        "bars": dict(zip(_COLUMNS, map(list, zip(*columns, strict=True)), strict=True))
        if columns
        else {name: [] for name in _COLUMNS},
        "texts": texts.all,
        "places": texts.places,
        "messages": _messages(trace, index_of),
        "collectives": _collectives(trace, index_of, layout),
        "ending": _ending(what.failure) if isinstance(what, Run) and what.failure else None,
    }


_COLUMNS = (
    *("rank", "row", "start", "wait", "end", "kind", "label", "about", "place", "before", "after"),
)


class _Texts:
    """Texts and places, each kept once: thousands of events come from a few lines."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.places: list[tuple[str, int, str]] = []
        self._numbers: dict[str, int] = {}
        self._place_numbers: dict[tuple[str, int, str], int] = {}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.all)
            self.all.append(one_line(text, 200))
        return self._numbers[text]

    def place(self, place: tuple[str, int, str]) -> int:
        if place not in self._place_numbers:
            self._place_numbers[place] = len(self.places)
            self.places.append(place)
        return self._place_numbers[place]


def _about(event: Event) -> str:
    """Say what a call moved, and whether it failed."""
    parts = []
    if event.shapes:
        shapes = ", ".join(str(list(shape)) for shape in event.shapes[:3])
        parts.append(f"{event.dtype} {shapes}{' …' if len(event.shapes) > 3 else ''}")
    if event.nbytes:
        parts.append(short_bytes(event.nbytes))
    if event.reduce_op:
        parts.append(event.reduce_op)
    if event.error:
        parts.append(f"failed: {event.error}")
    return ", ".join(parts)


def _place(event: Event, texts: _Texts) -> int:
    where = event.where
    if where is None:
        return -1
    return texts.place((one_line(where.cell or where.file), where.line, _code(where.source)))


def _code(line: str) -> str:
    return one_line(line, 120)


def _messages(trace: Trace, index_of: dict[int, int]) -> list[tuple[int, int]]:
    """Return (send, recv) as numbers of bars; -1 for a recv that never came, or is not among them."""
    return [
        (index_of[id(m.send)], index_of.get(id(m.recv), -1))
        for m in trace.messages()
        if id(m.send) in index_of
    ]


def _collectives(trace: Trace, index_of: dict[int, int], layout: Layout) -> list[list[int]]:
    """Return each collective as the numbers of its members' bars, where there are several."""
    found = ([index_of[id(c)] for c in m.calls if id(c) in index_of] for m in trace.collectives())
    return [numbers for numbers in found if len(numbers) > 1]


def _ending(failure: RankFailure) -> dict[str, Any]:
    """Say how a run that did not end well stood still: who waits for whom, in words and as arrows."""
    waits = failure.waits if isinstance(failure, Deadlock | RankTimeout) else ()
    guilty = failure.diagnosis.guilty if isinstance(failure, Deadlock) else ()
    return {
        "kind": type(failure).__name__,
        "title": one_line(failure.title, 300),
        "waits": [
            {"rank": w.rank, "says": one_line(describe_wait(w), 200), "for": list(w.waits_for)}
            for w in waits
        ],
        "guilty": list(guilty),
    }
