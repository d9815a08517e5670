"""Draw a run as a space-time diagram: ranks from top to bottom, time from left to right.

    Trace -> timeline_layout (rows, steps) -> draw_run() -> Drawing -> a still picture, and the player
          -> sequence (the run in words)

A thin bar is a call in flight during which its rank is free; a thick bar blocks its rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from time import time as now
from typing import Any

from helpers.ranks.run import Run
from helpers.trace.events import Message, Trace
from helpers.views.by_host import first_ranks, host_lines
from helpers.views.drawing import Area, Box, Drawing, Line, Mark, Word
from helpers.views.html_boxes import muted
from helpers.views.live import live_page, widgets_can_live
from helpers.views.palette import COLLECTIVE, FAILURE, KINDS, SEND, WAIT, Look, look_of
from helpers.views.picture import Picture, TraceSource, find_trace
from helpers.views.plain import one_line, plural
from helpers.views.player import MAX_PLAYED, PLAYER_SCRIPT, player_data
from helpers.views.sequence import describe_open_end, headline, label_of, rank_lines
from helpers.views.timeline_layout import Bar, Layout, Steps, compute_layout, playback_steps

MESSAGE = "message"
SAME = "the same collective"
MISMATCH = "mismatched collectives"
FAILED = "failed"
LOST_MESSAGE_LABEL = "message never received"
IN_FLIGHT = "thin: in flight; the rank can do other work"
BETWEEN = "message between hosts"
OUTLINED = "outlined: between hosts"
IN_FLIGHT_IN_PROFILE = "in flight (a profile does not say who waits)"
STRETCHED = "not to scale: all steps have room"
IMAGINED = "imagined: steps in order, no times"

WIDTH, LEFT, RIGHT = 900.0, 66.0, 14.0
_MAX_ARROWS = 500
_MAX_PLAYER_EVENTS = 2000
_MAX_HEIGHT = 1200.0
_NAME = 11.0
_HOST_NAME_HEIGHT = 22.0
"""Room for a host's name above its first lane, in pixels."""
_MAX_ZOOM = 100


@dataclass(frozen=True)
class _Sheet:
    """Positions on the page, in pixels."""

    layout: Layout
    steps: Steps
    top: float
    # Lane -> the host whose ranks begin at this lane; empty if all ran on one machine.
    hosts: Mapping[int, str]

    @property
    def rows(self) -> int:
        return self.layout.call_rows + self.layout.span_rows

    @property
    def crowded(self) -> bool:
        """Whether there is no room above the bars, in which case only long bars are labeled."""
        return len(self.layout.ranks) * self.rows > 24

    @property
    def row(self) -> float:
        if not self.crowded:
            return 36.0
        return min(18.0, max(2.0, _MAX_HEIGHT / (len(self.layout.ranks) * self.rows)))

    @property
    def bar(self) -> float:
        return 14.0 if not self.crowded else 0.72 * self.row

    @property
    def lane(self) -> float:
        return self.rows * self.row + (12 if self.row >= 18 else 2)

    @property
    def bottom(self) -> float:
        return self.top + self.lane * len(self.layout.ranks) + _HOST_NAME_HEIGHT * len(self.hosts)

    def lane_top(self, lane: int) -> float:
        return (
            self.top
            + lane * self.lane
            + _HOST_NAME_HEIGHT * sum(first <= lane for first in self.hosts)
        )

    def x(self, step: int) -> float:
        return LEFT + self.steps.at[min(step, len(self.steps.moments))] * (WIDTH - LEFT - RIGHT)

    def y(self, bar: Bar) -> float:
        """Return the height of a bar's middle."""
        row = bar.row + (self.layout.call_rows if bar.event.op == "span" else 0)
        return (
            self.lane_top(self.layout.lane_of(bar.rank)) + (row + 1) * self.row - self.bar / 2 - 1
        )

    def center(self, rank: int) -> float:
        return self.lane_top(self.layout.lane_of(rank)) + 0.5 * self.lane + 3


def timeline(run_or_trace: TraceSource, *, title: str | None = None) -> Picture:
    """Draw each rank's calls over time, the messages between ranks, and their collectives.

    In a notebook, the timeline is a player. Files exported by torch.profiler on the ranks are also accepted,
    as a list of each file's JSON. The still picture contains the earliest 2,000 calls and 500 messages, and
    the text states the number of those omitted. Raises TypeError for anything else.
    """
    still, text, live = _timeline(run_or_trace, title)
    return Picture(still, text, None if find_trace(run_or_trace).imagined else live)


def player_html(run: Run | None, *, at_once: bool = False, unplayed: str = "") -> str:
    """Return the player of a run, to be shown below its verdict or failure, or "" if nothing moves.

    The page describes the failure above the player, so the player itself only draws it. at_once: whether the
    player starts automatically, but not on a page that is opened later. unplayed: HTML shown below the
    picture if scripts are removed, and on paper.
    """
    if run is None or not 0 < len(run.trace) <= _MAX_PLAYER_EVENTS or not widgets_can_live():
        return ""
    return (
        "" if run.trace.imagined else _timeline(run)[2](unplayed, failure="", made=at_once * now())
    )


STILL_WORDS = (
    "This is a still picture. To play it in JupyterLab, run the cell again, or choose Trust Notebook in "
    "View → Activate Command Palette."
)
"""The text below a picture whose script was removed, for example in an untrusted notebook."""


def _timeline(
    source: TraceSource, title: str | None = None
) -> tuple[Drawing, str, Callable[..., str]]:
    """Return the still picture, its text, and a function that makes the live page from additional data."""
    trace = find_trace(source)
    layout = compute_layout(trace)
    profile = isinstance(source, list)
    lines = [
        headline(trace),
        *host_lines(trace),
        *rank_lines(trace),
        *_left_out_text(layout, trace),
    ]
    text = "\n".join(lines)

    still = _draw_run(trace, layout, playback_steps(layout), title, profile)[0]

    def live(unplayed: str = "", **more: Any) -> str:
        whole = compute_layout(trace, max_bars=MAX_PLAYED) if layout.left_out else layout
        steps = playback_steps(whole)
        drawing, flights = _draw_run(trace, whole, steps, title, profile, MAX_PLAYED)
        data = player_data(source, trace, whole, steps, flights) | more
        # the page animates the image, unless the run has more calls than the image
        data["drawing"] = drawing.svg(text) if layout.left_out else ""
        image = (still if layout.left_out else drawing).still(text)
        return live_page(PLAYER_SCRIPT, data, image + unplayed + muted(STILL_WORDS))

    return still, text, live


def _left_out_text(layout: Layout, trace: Trace) -> list[str]:
    lines = []
    if layout.left_out:
        lines.append(f"not drawn: {plural(layout.left_out, 'call')} of {len(trace):,}")
    arrows = len(trace.messages()) - _MAX_ARROWS
    if arrows > 0:
        lines.append(f"drawn without an arrow: {plural(arrows, 'message')}")
    if trace.dropped:
        lines.append(f"not recorded: {plural(trace.dropped, 'call')} beyond the trace's limit")
    return lines


MessageArrow = tuple[int, int, float, float]
"""A message: the steps of its send and its receive (-1: never), and the heights of both ends."""


def _draw_run(
    trace: Trace,
    layout: Layout,
    steps: Steps,
    title: str | None,
    profile: bool,
    max_events: int = _MAX_ARROWS,
) -> tuple[Drawing, list[MessageArrow]]:
    """Draw a run. Also return the drawing's messages, for a page that animates them."""
    sheet = _Sheet(layout, steps, 34.0 if title else 6.0, first_ranks(trace.hosts))
    flights, messages = _draw_messages(trace, trace.messages()[:max_events], sheet)
    marks = [
        *_draw_collectives(trace, sheet),
        *_draw_lanes(sheet),
        *_draw_bars(sheet),
        *messages,
        *_draw_names(sheet, _NAME - 1.5 if sheet.crowded else _NAME),
        *(() if trace.imagined else _draw_times(sheet)),
    ]
    legend, height = _draw_legend(marks, sheet, profile, bool(trace.imagined))
    fixed = [_make_word(4, 21, one_line(title, 90), 14.0, heavy=True)] if title else []
    ranks = layout.ranks[:: max(1, math.ceil(14 / sheet.lane))]
    fixed += [_make_word(4, sheet.center(r) + 4, f"rank {r}", 12.0, heavy=True) for r in ranks]
    fixed += [
        _make_word(4, sheet.lane_top(lane) - 4, one_line(host, 60), 12.0, "quiet")
        for lane, host in sheet.hosts.items()
    ]
    about = (("left", LEFT), ("right", RIGHT), ("top", sheet.top), ("bottom", sheet.bottom))
    return Drawing(WIDTH, height, tuple(marks), (*fixed, *legend), about), flights


def _make_word(
    x: float, y: float, text: str, size: float, style: str = "word", heavy: bool = False
) -> Word:
    return Word(((x, y),), style, text=text, size=size, heavy=heavy)


def _draw_lanes(sheet: _Sheet) -> Iterator[Mark]:
    """Draw a line for each rank, on which its calls are placed."""
    last = len(sheet.steps.moments)
    for lane in range(len(sheet.layout.ranks)):
        if lane and lane in sheet.hosts:
            y = sheet.lane_top(lane) - _HOST_NAME_HEIGHT + 2
            yield Line(((LEFT, y), (WIDTH - RIGHT, y)), "dashed", at=(-1, last))
        y = sheet.lane_top(lane) + sheet.row - sheet.bar / 2 - 1
        yield Line(((LEFT, y), (WIDTH - RIGHT, y)), "rule", at=(-1, last))


def _draw_bars(sheet: _Sheet) -> Iterator[Mark]:
    """Draw each call as a bar, thin until its rank waits for it, then thick, and open if it never ended."""
    failed = []
    for number, bar in enumerate(sheet.layout.bars):
        begin, wait, end = (
            s[number] for s in (sheet.steps.begin, sheet.steps.wait, sheet.steps.end)
        )
        look, y = look_of(bar.event), sheet.y(bar)
        if bar.wait_ns > bar.start_ns:
            yield _draw_bar(begin, min(wait, end), y, 4.0, "solid", look, sheet)
        if bar.end_ns is None:
            yield _draw_bar(wait, end, y, sheet.bar, "open", FAILURE, sheet)
        elif bar.end_ns > bar.wait_ns or bar.wait_ns == bar.start_ns:
            yield _draw_bar(wait, end, y, sheet.bar, "tint", look, sheet)
        if bar.event.error:
            failed.append(_draw_cross(sheet.x(end), y, end))
    yield from failed


def _draw_bar(
    start: int, end: int, y: float, tall: float, style: str, look: Look, sheet: _Sheet
) -> Box:
    corners = ((sheet.x(start), y - tall / 2), (sheet.x(end) - 1, y + tall / 2))
    return Box(corners, style, look, (start, end))


def _draw_cross(x: float, y: float, step: int) -> Word:
    return Word(
        ((x, y + 5),), "word", FAILURE, (step,), text="✕", size=14.0, anchor="middle", heavy=True
    )


def _draw_names(sheet: _Sheet, size: float) -> Iterator[Mark]:
    """Write the name of each bar above it, if there is room before the next bar in its row."""
    if sheet.row < size + 4:
        return
    following: dict[tuple[int, float], int] = {}
    last = len(sheet.steps.moments)
    for number in range(len(sheet.layout.bars) - 1, -1, -1):
        bar, begin = sheet.layout.bars[number], sheet.steps.begin[number]
        y = sheet.y(bar)
        until = sheet.steps.end[number] if sheet.crowded else following.get((bar.rank, y), last)
        following[bar.rank, y] = begin
        if bar.end_ns is None and len(sheet.layout.ranks) <= 8:
            wait = sheet.steps.wait[number]
            place = ((sheet.x(wait) + 6, y + 4), (sheet.x(last), y))
            words = describe_open_end(bar.event)
            yield Word(place, "word", FAILURE, (wait, last), words, size - 1, mono=True)
        top = y + 3.5 if sheet.crowded else y - sheet.bar / 2 - 4
        place = ((sheet.x(begin) + 1, top), (sheet.x(until) - 2, top))
        name = Word(place, "word", None, (begin, until), label_of(bar.event), size, mono=True)
        if name.width <= _MAX_ZOOM * (sheet.x(until) - sheet.x(begin)):
            yield name


def _draw_times(sheet: _Sheet) -> Iterator[Mark]:
    """Write the times of some steps, because the drawing is not to scale."""
    moments = sheet.steps.moments
    free, ticks = -1.0, []
    for step, (time, _, _) in enumerate(moments):
        if sheet.x(step) >= free:
            by, name = (1e3, "µs") if time < 1e6 else (1e6, "ms") if time < 1e9 else (1e9, "s")
            ticks.append((step, f"{float(f'{time / by:.3g}'):g} {name if time else ''}".strip()))
            free = sheet.x(step) + 96
    y = sheet.bottom
    for (step, text), (following, _) in pairwise([*ticks, (len(moments), "")]):
        x = sheet.x(step)
        yield Line(((x, y), (x, y + 5)), "rule", at=(step, step))
        place = ((x, y + 17), (sheet.x(following), y))
        yield Word(place, "quiet", None, (step, following), text, 10.5)


def _draw_collectives(trace: Trace, sheet: _Sheet) -> Iterator[Mark]:
    """Connect the calls of each collective from rank to rank. A mismatch has a different look."""
    numbers = {id(bar.event): number for number, bar in enumerate(sheet.layout.bars)}
    for collective in trace.collectives():
        met = [numbers[id(call)] for call in collective.calls if id(call) in numbers]
        same = len({call.op for call in collective.calls}) == 1
        for upper, lower in pairwise(met):
            begin, end = sheet.steps.begin, sheet.steps.end
            at = (begin[upper], end[upper], end[lower], begin[lower])
            ys = [sheet.y(sheet.layout.bars[n]) for n in (upper, upper, lower, lower)]
            points = tuple((sheet.x(step), y) for step, y in zip(at, ys, strict=True))
            look = COLLECTIVE if same else FAILURE
            yield Area(points, "ribbon", look, at)
            if trace.between_hosts(collective.group_ranks):
                for one, other in ((0, 3), (1, 2)):  # from the later beginning to the earlier end
                    yield Line((points[one], points[other]), "line", look, (at[one], at[other]))


def _draw_messages(
    trace: Trace, messages: tuple[Message, ...], sheet: _Sheet
) -> tuple[list[MessageArrow], list[Mark]]:
    """Draw an arrow from each send to its recv. The arrow of an unreceived message ends halfway."""
    numbers = {id(bar.event): number for number, bar in enumerate(sheet.layout.bars)}
    heads = len(messages) <= _MAX_ARROWS
    flights: list[MessageArrow] = []
    marks: list[Mark] = []
    for message in messages:
        send, recv = numbers.get(id(message.send)), numbers.get(id(message.recv))
        known = message.dst in sheet.layout.ranks and message.src != message.dst
        if send is None or not known or (message.recv is not None and recv is None):
            continue
        begin, y = sheet.steps.begin[send], sheet.y(sheet.layout.bars[send])
        if recv is not None and message.recv is not None and message.recv.finished:
            end, v = sheet.steps.end[recv], sheet.y(sheet.layout.bars[recv])
            points = ((sheet.x(begin), y), (sheet.x(end), v))
            style = "bold" if trace.between_hosts((message.src, message.dst)) else "line"
            marks.append(Line(points, style, SEND, (begin, end), head=heads))
            flights.append((begin, end, y, v))
            continue
        end = min(begin + 1, len(sheet.steps.moments))
        v = (y + sheet.center(message.dst)) / 2
        points = ((sheet.x(begin), y), (sheet.x(end), v))
        marks += [Line(points, "dashed", FAILURE, (begin, end)), _draw_cross(*points[1], end)]
        flights.append((begin, -1, y, v))
    return flights, marks


def _draw_legend(
    marks: list[Mark], sheet: _Sheet, profile: bool, imagined: bool
) -> tuple[list[Mark], float]:
    """Explain the kinds of marks used, below the lanes. Return the legend's marks and their lower end."""
    seen = {(type(mark), mark.style, mark.look) for mark in marks}
    errors = any(bar.event.error for bar in sheet.layout.bars)
    ends = {describe_open_end(bar.event) for bar in sheet.layout.bars if bar.end_ns is None}
    entries: list[tuple[str, str, Look | None]] = [
        (look.name, "tint", look)
        for look in KINDS
        if {(Box, "tint", look), (Box, "solid", look)} & seen and look is not WAIT
    ]
    known = (
        (MESSAGE, "line", SEND, (Line, "line", SEND)),
        (BETWEEN, "bold", SEND, (Line, "bold", SEND)),
        (SAME, "ribbon", COLLECTIVE, (Area, "ribbon", COLLECTIVE)),
        (MISMATCH, "ribbon", FAILURE, (Area, "ribbon", FAILURE)),
        (" or ".join(sorted(ends)), "open", FAILURE, (Box, "open", FAILURE)),
        (LOST_MESSAGE_LABEL, "dashed", FAILURE, (Line, "dashed", FAILURE)),
    )
    entries += [(name, style, look) for name, style, look, mark in known if mark in seen]
    entries += [(OUTLINED, "", None)] if (Line, "line", COLLECTIVE) in seen else []
    entries += [(f"✕ {FAILED}", "", None)] if errors else []
    thin = any(style == "solid" for _, style, _ in seen)
    entries += [(IN_FLIGHT_IN_PROFILE if profile else IN_FLIGHT, "", None)] if thin else []
    about = IMAGINED if imagined else STRETCHED
    entries += [(about, "", None)] if sheet.steps.moments else []
    x, y = 4.0, sheet.bottom + 40
    drawn: list[Mark] = []
    for name, style, look in entries:
        said = "unscaled" if name == STRETCHED else "quiet"
        word = _make_word(x + (24 if style else 0), y, name, 11.0, said)
        wide = word.points[0][0] - x + word.width
        if x + wide > WIDTH and x > 4:
            x, y = 4.0, y + 20
            word = replace(word, points=((x + (24 if style else 0), y),))
        if style in {"line", "bold", "dashed"}:
            drawn.append(Line(((x, y - 4), (x + 18, y - 4)), style, look, head=style != "dashed"))
        elif style:
            drawn.append(Box(((x, y - 10), (x + 18, y + 1)), style, look))
        drawn.append(word)
        x += wide + 14
    return drawn, y + 10
