"""Draw a run as a space-time diagram: ranks from top to bottom, time from left to right.

    Trace -> timeline_layout (rows) -> timeline_labels (room for names) -> timeline() -> Picture
          -> sequence (the same in words)

A thin bar is a call in flight while its rank is free to do other things; a thick one holds its
rank up. Lengths across the lanes are in inches, so that bars and names keep their size from 2
ranks to 16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from helpers.trace.events import Collective, Trace
from helpers.views.palette import FAILURE, FAINT, INK, KINDS, SEND
from helpers.views.picture import Picture, Seen, new_figure, seen_in
from helpers.views.plain import one_line, plural
from helpers.views.player import PAGE, played
from helpers.views.sequence import headline, label_of, rank_lines
from helpers.views.timeline_labels import Label, Wanted, place_labels
from helpers.views.timeline_layout import Bar, Layout, lay_out
from helpers.views.timeline_marks import (
    FAILED,
    IN_FLIGHT,
    LOST,
    MESSAGE,
    MISMATCH,
    MOST_ARROWS,
    NEVER_FINISHED,
    OUT,
    SAME,
    Lanes,
    draw_bars,
    draw_collectives,
    draw_messages,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 9.6
_AXES_WIDTH = 8.6
_CHARACTER = 0.066
# A fixed order, so that the legend does not depend on which rank happened to be first.
_LEGEND = (
    *(look.name for look in KINDS),
    MESSAGE,
    SAME,
    IN_FLIGHT,
    OUT,
    MISMATCH,
    NEVER_FINISHED,
    LOST,
    FAILED,
)
_UNITS = ((2e6, 1e3, "µs"), (1e10, 1e6, "ms"), (float("inf"), 1e9, "s"))


def timeline(run_or_trace: Seen, *, title: str | None = None) -> Picture:
    """Draw who called what when, the messages between ranks, and the collectives that they met in.

    Instead of a run it takes what torch.profiler exported on its ranks, a list of each file's JSON.
    The earliest 2,000 calls and 500 messages are drawn; the text says how many were left out.
    Raises TypeError for anything else.
    """
    trace = seen_in(run_or_trace)
    layout = lay_out(trace)
    collectives = trace.collectives()
    lanes = Lanes.fit(layout)
    labels = place_labels(_wanted(layout, collectives), lanes.levels, layout.length_ns)
    # Levels that no name needs are given back before anything is drawn.
    lanes = replace(lanes, levels=max((label.level + 1 for label in labels), default=0))
    figure = new_figure(_WIDTH, lanes.height * layout.world_size + 1.1)
    axes = figure.add_subplot()
    _draw_frame(axes, layout, lanes, title)
    draw_collectives(axes, collectives, layout, lanes)
    draw_bars(axes, layout, lanes, OUT if isinstance(run_or_trace, list) else IN_FLIGHT)
    draw_messages(axes, trace.messages(), layout, lanes)
    _draw_labels(axes, layout, lanes, labels)
    _draw_legend(figure, axes)
    lines = [headline(trace), *rank_lines(trace), *_left_out(layout, trace)]
    return Picture(figure, "\n".join(lines), live=(PAGE, lambda: played(run_or_trace)))


def _left_out(layout: Layout, trace: Trace) -> list[str]:
    lines = []
    if layout.left_out:
        lines.append(f"not drawn: {plural(layout.left_out, 'call')} of {len(trace):,}")
    arrows = len(trace.messages()) - MOST_ARROWS
    if arrows > 0:
        lines.append(f"drawn without an arrow: {plural(arrows, 'message')}")
    if trace.dropped:
        lines.append(f"not recorded: {plural(trace.dropped, 'call')} beyond the trace's limit")
    return lines


def _draw_frame(axes: Axes, layout: Layout, lanes: Lanes, title: str | None) -> None:
    divisor, unit = next((d, u) for limit, d, u in _UNITS if layout.length_ns < limit)
    bottom = lanes.height * layout.world_size
    axes.set_xlim(-0.008 * layout.length_ns, layout.length_ns)
    axes.set_ylim(max(bottom, 0.1), 0)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x / divisor:g}")
    axes.set_xlabel(f"time since the first event [{unit}]", fontsize=9)
    step = -(-layout.world_size // 64)
    ranks = range(0, layout.world_size, max(1, step))
    axes.set_yticks([lanes.centre(rank) for rank in ranks], [f"rank {r}" for r in ranks])
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=8.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    for rank in range(1, layout.world_size, 2):
        axes.axhspan(rank * lanes.height, (rank + 1) * lanes.height, color="#F5F5F5", zorder=0)
    if title:
        axes.set_title(one_line(title, 90), fontsize=10.5, loc="left", parse_math=False)


def _width_of(text: str, layout: Layout) -> float:
    return (len(text) + 1) * _CHARACTER * layout.length_ns / _AXES_WIDTH


def _fits_inside(bar: Bar, layout: Layout) -> bool:
    room = layout.end_of(bar) - bar.start_ns
    return bar.event.op == "span" and _width_of(label_of(bar.event), layout) <= room


def _wanted(layout: Layout, collectives: tuple[Collective, ...]) -> list[Wanted]:
    """Ask for a name for each bar; on many ranks, one collective is named once, on its first."""
    first: set[int] = set()
    others: set[int] = set()
    if layout.world_size > 4:
        same = [m.calls for m in collectives if len({call.op for call in m.calls}) == 1]
        first = {id(calls[0]) for calls in same}
        others = {id(call) for calls in same for call in calls[1:]}
    wanted = []
    for bar in layout.bars:
        if id(bar.event) not in others and not _fits_inside(bar, layout):
            text = label_of(bar.event)
            width, room = _width_of(text, layout), layout.end_of(bar) - bar.start_ns
            # A name that stands for many bars is worth its place next to a short one.
            room = width if id(bar.event) in first else room
            wanted.append(Wanted(bar.rank, bar.start_ns, width, room, text))
    return wanted


def _draw_labels(axes: Axes, layout: Layout, lanes: Lanes, labels: tuple[Label, ...]) -> None:
    for label in labels:
        lane, x = label.of.lane, label.of.x
        y = lanes.label(lane, label.level)
        _write(axes, label.x, y, label.of.text)
        if label.level or label.x < x:
            axes.plot([x, x], [y, lanes.top(lane)], color=FAINT, linewidth=0.6, zorder=2)
    for bar in layout.bars:
        middle = (bar.wait_ns + layout.end_of(bar)) / 2
        if _fits_inside(bar, layout):
            _write(axes, middle, lanes.middle(bar), label_of(bar.event), ha="center")
        elif bar.end_ns is None and layout.world_size <= 8:
            _write(
                axes, middle, lanes.middle(bar), NEVER_FINISHED, ha="center", color=FAILURE.color
            )


def _write(
    axes: Axes, x: float, y: float, text: str, *, ha: str = "left", color: str = INK
) -> None:
    axes.text(
        x,
        y,
        text,
        fontsize=7.5,
        family="DejaVu Sans Mono",
        color=color,
        ha=ha,
        va="center",
        zorder=7,
        parse_math=False,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.4},
    )


def _draw_legend(figure: Figure, axes: Axes) -> None:
    """Explain, outside of the data, the kinds of mark that occur."""
    marks: dict[str, Any] = {}
    for mark, label in zip(*axes.get_legend_handles_labels(), strict=True):
        marks.setdefault(label, mark)
    names = sorted(marks, key=_LEGEND.index)
    if names:
        figure.legend(
            [_sample(marks[name]) for name in names],
            names,
            loc="outside lower left",
            ncols=min(len(names), 5),
            fontsize=8,
            frameon=False,
            handlelength=2.6,
        )


def _sample(mark: Any) -> Any:
    """Make what stands for a mark in the legend, which by itself would lose hatches and heads."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    label = mark.get_label()
    if label in {IN_FLIGHT, OUT}:
        return Line2D([], [], color=FAINT, linewidth=3.5)
    if label == MESSAGE:
        return Line2D([], [], color=SEND.color, marker=">", markersize=5)
    if label == LOST:
        return Line2D([], [], color=FAILURE.color, linestyle=":", marker=FAILURE.marker)
    if label == FAILED:
        return mark
    sample = Patch(hatch=mark.get_hatch(), linestyle=mark.get_linestyle()[0])
    sample.set_facecolor(mark.get_facecolor()[0])
    sample.set_edgecolor(mark.get_edgecolor()[0])
    return sample
