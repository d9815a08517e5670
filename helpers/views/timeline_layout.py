"""Place each bar of a timeline: its row in the rank's lane, its beginning, and its end.

    Trace -> compute_layout() -> Layout (bars, times in ns from the first event) -> playback_steps() -> Steps

A step is one event for a reader: the beginning of a call, the wait for it, or its end. Each step has a
minimum width in the drawing, and long steps are wider. If times were drawn to scale, most of a run would be
narrower than a point.

Ranks may report wrong times, so times are clamped: no bar ends before it starts. Only `MAX_BARS` bars are
kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from helpers.trace.events import Event, Trace

MAX_BARS = 2000
BEGINS, WAITS, ENDS = range(3)
_EVEN_SHARE = 0.6
"""The share of the drawing divided equally between all steps. The rest is divided by duration."""
_MAX_ROWS = 3
_OPEN_END = float("inf")
_FARTHEST_NS = 2**62


@dataclass(frozen=True, slots=True)
class Bar:
    """One placed event. Times are in ns since the first event. `end_ns` is None if the bar is open-ended.

    The rank was free from start_ns to wait_ns, and blocked from wait_ns to the end.
    """

    event: Event
    row: int
    start_ns: float
    wait_ns: float
    end_ns: float | None

    @property
    def rank(self) -> int:
        return self.event.rank


@dataclass(frozen=True, slots=True)
class Layout:
    """All bars, and each rank's number of rows for spans and, below them, for calls."""

    ranks: Sequence[int]
    bars: tuple[Bar, ...]
    span_rows: int
    call_rows: int
    last_ns: float
    left_out: int

    def lane_of(self, rank: int) -> int:
        """Return the position of a rank's lane, from the top."""
        return self.ranks.index(rank)

    @property
    def length_ns(self) -> float:
        """Return the width of the picture in ns. Open ends, if any, add room."""
        has_open = any(bar.end_ns is None for bar in self.bars)
        return max(1.0, self.last_ns) * (1.25 if has_open else 1.02)


def compute_layout(trace: Trace, max_bars: int = MAX_BARS) -> Layout:
    """Place the earliest `max_bars` events of the world's ranks."""
    events = sorted(
        (event for event in trace if event.rank in trace.ranks),
        key=lambda event: (_clamp(event.start_ns), event.rank, event.seq),
    )[:max_bars]
    origin = _clamp(events[0].start_ns) if events else 0
    spans = _assign_rows([_make_bar(e, origin) for e in events if e.op == "span"], trace.world_size)
    calls = _assign_rows([_make_bar(e, origin) for e in events if e.op != "span"], trace.world_size)
    bars = tuple(sorted((*spans, *calls), key=lambda b: (b.start_ns, b.rank, b.event.seq)))
    return Layout(
        ranks=trace.ranks,
        bars=bars,
        span_rows=_row_count(spans),
        call_rows=max(1, _row_count(calls)),
        last_ns=max((bar.end_ns or bar.wait_ns for bar in bars), default=1.0),
        left_out=len(trace) - len(events),
    )


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a layout, in the order of time.

    moments: (time, kind of step, number of a bar). begin, wait, end: for each bar, the numbers of its steps;
    a bar without an end extends beyond the last step. at: the position of each step, from 0 to 1, followed by
    the position of the end.
    """

    moments: tuple[tuple[float, int, int], ...]
    begin: tuple[int, ...]
    wait: tuple[int, ...]
    end: tuple[int, ...]
    at: tuple[float, ...]


def playback_steps(layout: Layout) -> Steps:
    """Return all beginnings, waits and ends of bars in order."""
    moments = []
    for number, bar in enumerate(layout.bars):
        moments.append((bar.start_ns, BEGINS, number))
        if bar.start_ns < bar.wait_ns and (bar.end_ns is None or bar.wait_ns < bar.end_ns):
            moments.append((bar.wait_ns, WAITS, number))
        if bar.end_ns is not None:
            moments.append((bar.end_ns, ENDS, number))
    moments.sort()
    last = len(moments)
    seen: tuple[dict[int, int], ...] = ({}, {}, {})
    for step, (_, what, number) in enumerate(moments):
        seen[what][number] = step
    begin, end = (
        [seen[what].get(n, last) for n in range(len(layout.bars))] for what in (BEGINS, ENDS)
    )
    wait = [
        seen[WAITS].get(n, end[n] if bar.wait_ns > bar.start_ns else begin[n])
        for n, bar in enumerate(layout.bars)
    ]
    times = [time for time, _, _ in moments]
    whole = max(1.0, times[-1] - times[0]) if times else 1.0
    gaps = [
        _EVEN_SHARE,
        *(_EVEN_SHARE + (1 - _EVEN_SHARE) * last * (b - a) / whole for a, b in pairwise(times)),
    ]
    gaps.append(_EVEN_SHARE * (3 if last in end else 1))
    room = sum(gaps)
    at = tuple(far / room for far in accumulate(gaps)) if times else (1.0,)
    return Steps(tuple(moments), tuple(begin), tuple(wait), tuple(end), at)


def _clamp(time_ns: int) -> int:
    return max(-_FARTHEST_NS, min(_FARTHEST_NS, time_ns))


def _make_bar(event: Event, origin: int) -> Bar:
    start = _clamp(event.start_ns)
    end = None if event.end_ns is None else max(start, _clamp(event.end_ns))
    # A blocking call blocks its rank from the start, and an asynchronous call only while the rank waits for
    # it.
    wait = event.wait_ns if event.asynchronous else start
    if wait is None:
        wait = start if end is None else end
    wait = max(start, _clamp(wait))
    if end is not None:
        wait = min(wait, end)
    return Bar(
        event=event,
        row=0,
        start_ns=float(start - origin),
        wait_ns=float(wait - origin),
        end_ns=None if end is None else float(end - origin),
    )


def _assign_rows(bars: Sequence[Bar], world_size: int) -> tuple[Bar, ...]:
    """Put overlapping bars into different rows of their rank's lane, as long as it has free rows."""
    free: list[list[float]] = [[] for _ in range(world_size)]
    placed = []
    for bar in bars:
        row = _first_free_row(free[bar.rank], bar.start_ns)
        end = _OPEN_END if bar.end_ns is None else bar.end_ns
        free[bar.rank][row] = max(free[bar.rank][row], end)
        placed.append(Bar(bar.event, row, bar.start_ns, bar.wait_ns, bar.end_ns))
    return tuple(placed)


def _first_free_row(rows: list[float], start_ns: float) -> int:
    for row, free_from in enumerate(rows):
        if free_from <= start_ns:
            return row
    if len(rows) < _MAX_ROWS:
        rows.append(start_ns)
        return len(rows) - 1
    return min(range(len(rows)), key=lambda row: rows[row])


def _row_count(bars: Iterable[Bar]) -> int:
    return max((bar.row + 1 for bar in bars), default=0)
