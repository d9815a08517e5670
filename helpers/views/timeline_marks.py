"""The marks of a timeline: bars, the ribbons that join collectives, the arrows of messages.

`timeline` calls these with axes whose x is ns since the first event and whose y is inches from
the top, as `Lanes` measures them. Each kind of mark carries its legend's text as its label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.trace.events import Collective, Message
from helpers.views.palette import COLLECTIVE, FAILURE, SEND, Look, look_of
from helpers.views.timeline_layout import Bar, Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyArrowPatch

Point = tuple[float, float]

MOST_ARROWS = 500
MESSAGE = "message"
SAME = "the same collective"
MISMATCH = "mismatched collectives"
FAILED = "failed"
LOST = "message never received"
IN_FLIGHT = "in flight, the rank is free (thick: it is held up)"
OUT = "in flight (a profile does not say who waits)"
NEVER_FINISHED = "never finished"
_TALLEST = 14.0
_ROW = 0.19
_LABEL = 0.15
_GAP = 0.1


@dataclass(frozen=True)
class Lanes:
    """The geometry of all lanes, in inches from the top: names, below them calls, then spans."""

    world_size: int
    levels: int
    row: float
    call_rows: int
    span_rows: int

    @classmethod
    def fit(cls, layout: Layout) -> Lanes:
        """Return each lane its rows, and as many levels of names as the page has room for."""
        rows = layout.span_rows + layout.call_rows
        room = _TALLEST / max(1, layout.world_size)
        most = 3 if layout.world_size <= 4 else 2 if layout.world_size <= 8 else 1
        levels = max(0, min(most, int((room - rows * _ROW - _GAP) / _LABEL)))
        row = min(_ROW, 0.8 * room / rows)
        return cls(layout.world_size, levels, row, layout.call_rows, layout.span_rows)

    @property
    def height(self) -> float:
        """The height of one lane."""
        rows = self.call_rows + self.span_rows
        return self.levels * _LABEL + rows * self.row + min(_GAP, self.row)

    def middle(self, bar: Bar) -> float:
        """Return the height of a bar's middle."""
        row = bar.row + (self.call_rows if bar.event.op == "span" else 0)
        return self.top(bar.rank) + (row + 0.5) * self.row

    def label(self, rank: int, level: int) -> float:
        """Return the height of the middle of a name."""
        return self.top(rank) - (level + 0.5) * _LABEL

    def centre(self, rank: int) -> float:
        """Return the height of the middle of all bars of a rank."""
        return self.top(rank) + (self.call_rows + self.span_rows) * self.row / 2

    def top(self, rank: int) -> float:
        """Return the height at which a rank's bars begin."""
        return rank * self.height + self.levels * _LABEL + min(_GAP, self.row) / 2


def draw_bars(axes: Axes, layout: Layout, lanes: Lanes, in_flight: str = IN_FLIGHT) -> None:
    """Draw all bars, one collection for each way in which a bar can look. in_flight: what a thin one says.

    In a profile, where all bars are thin, one begins with a tick, so that two that touch look like two.
    """
    boxes: dict[tuple[Look, str], list[list[Point]]] = {}
    begins: dict[Look, list[Point]] = {}
    for bar in layout.bars:
        look, middle, end = look_of(bar.event), lanes.middle(bar), layout.end_of(bar)
        if bar.wait_ns > bar.start_ns:
            thin = _box(bar.start_ns, min(bar.wait_ns, end), middle, 0.2 * lanes.row)
            boxes.setdefault((look, in_flight), []).append(thin)
            begins.setdefault(look, []).append((bar.start_ns, middle))
        if bar.end_ns is None:
            tail = _box(bar.wait_ns, end, middle, 0.8 * lanes.row)
            boxes.setdefault((FAILURE, NEVER_FINISHED), []).append(tail)
        elif bar.end_ns > bar.wait_ns or bar.wait_ns == bar.start_ns:
            thick = _box(bar.wait_ns, end, middle, 0.8 * lanes.row)
            boxes.setdefault((look, "thick"), []).append(thick)
    for (look, part), corners in boxes.items():
        _add_boxes(axes, corners, look, part)
    if in_flight == OUT:
        for look, points in begins.items():
            xs, ys = zip(*points, strict=True)
            tops, bottoms = ([y + d * lanes.row for y in ys] for d in (-0.28, 0.28))
            axes.vlines(xs, tops, bottoms, look.color, linewidth=1.2, zorder=3)
    failed = [(layout.end_of(bar), lanes.middle(bar)) for bar in layout.bars if bar.event.error]
    if failed:
        _crosses(axes, failed, FAILED)


def _box(start: float, end: float, middle: float, height: float) -> list[Point]:
    top, bottom = middle - height / 2, middle + height / 2
    return [(start, top), (end, top), (end, bottom), (start, bottom)]


def _add_boxes(axes: Axes, corners: list[list[Point]], look: Look, part: str) -> None:
    from matplotlib.collections import PolyCollection

    thin, open_ended = part in {IN_FLIGHT, OUT}, part == NEVER_FINISHED
    axes.add_collection(
        PolyCollection(
            corners,
            facecolor=look.color if thin else look.tint,
            edgecolor=look.color,
            linewidth=0.9,
            linestyle="--" if open_ended else "-",
            hatch=None if thin else look.hatch,
            label=part if thin or open_ended else look.name,
            zorder=3,
        )
    )


def draw_collectives(
    axes: Axes, collectives: tuple[Collective, ...], layout: Layout, lanes: Lanes
) -> None:
    """Join the calls of each collective by a ribbon from rank to rank; a mismatch looks other."""
    from matplotlib.collections import PolyCollection

    bars = {id(bar.event): bar for bar in layout.bars}
    ribbons: dict[Look, list[list[Point]]] = {}
    for collective in collectives:
        met = [bars[id(call)] for call in collective.calls if id(call) in bars]
        look = COLLECTIVE if len({call.op for call in collective.calls}) == 1 else FAILURE
        for upper, lower in zip(met, met[1:], strict=False):
            top, bottom = lanes.middle(upper), lanes.middle(lower)
            corners = [
                (upper.start_ns, top),
                (layout.end_of(upper), top),
                (layout.end_of(lower), bottom),
                (lower.start_ns, bottom),
            ]
            ribbons.setdefault(look, []).append(corners)
    for look, corners_of in ribbons.items():
        label = SAME if look is COLLECTIVE else MISMATCH
        axes.add_collection(
            PolyCollection(
                corners_of,
                facecolor=look.color,
                edgecolor=look.color,
                alpha=0.16,
                linestyle=look.line,
                linewidth=1.0,
                zorder=1,
                label=label,
            )
        )


def draw_messages(axes: Axes, messages: tuple[Message, ...], layout: Layout, lanes: Lanes) -> None:
    """Draw an arrow from each send to the recv that took it; one that nobody took stops short."""
    bars = {id(bar.event): bar for bar in layout.bars}
    small = layout.world_size > 8 or len(messages) > 60
    lost = []
    for message in messages[:MOST_ARROWS]:
        ends = _arrow_ends(message, bars, layout, lanes)
        if ends is not None:
            arrived = message.recv is not None and message.recv.finished
            axes.add_patch(_arrow(ends, arrived, small))
            lost += [] if arrived else [ends[1]]
    if lost:
        _crosses(axes, lost, LOST)


def _arrow(ends: tuple[Point, Point], arrived: bool, small: bool) -> FancyArrowPatch:
    from matplotlib.patches import FancyArrowPatch

    return FancyArrowPatch(
        *ends,
        arrowstyle="-|>" if arrived else "-",
        mutation_scale=6 if small else 9,
        linestyle="-" if arrived else (0, (2, 2)),
        color=SEND.color if arrived else FAILURE.color,
        linewidth=0.8 if small else 1.1,
        shrinkA=0,
        shrinkB=0,
        zorder=4,
        label=MESSAGE if arrived else "_",
    )


def _crosses(axes: Axes, points: list[Point], label: str) -> None:
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=FAILURE.color,
        linestyle="none",
        marker=FAILURE.marker,
        markersize=7,
        markeredgecolor="white",
        zorder=6,
        label=label,
    )


def _arrow_ends(
    message: Message, bars: dict[int, Bar], layout: Layout, lanes: Lanes
) -> tuple[Point, Point] | None:
    """Return where a message's arrow starts and ends; without a recv it stops half way."""
    send = bars.get(id(message.send))
    if send is None or message.src == message.dst or not 0 <= message.dst < layout.world_size:
        return None
    start = (send.start_ns, lanes.middle(send))
    if message.recv is None:
        half_way = (start[1] + lanes.centre(message.dst)) / 2
        return start, (min(layout.length_ns, send.start_ns + 0.04 * layout.length_ns), half_way)
    recv = bars.get(id(message.recv))
    return None if recv is None else (start, (layout.end_of(recv), lanes.middle(recv)))
