"""Draw one training step of several runs below each other: one rank's computation and its traffic.

    Run -> the last step of one rank -> spans above, calls in flight below -> Picture

All steps begin at 0, so that the position of communication can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.trace.events import Event, Trace
from helpers.views.palette import COLLECTIVE, INK, SPAN
from helpers.views.picture import Picture, TraceSource, find_trace, new_figure
from helpers.views.plain import one_line, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 8.0
_MS = 1e6
_SPAN_HEIGHT = 0.62
_MAX_ROWS = 12
_ROW_HEIGHT = 1.12 / _MAX_ROWS
_LANE_GAP = 1.0
_SPACE_ABOVE = 0.5
"""Room above the first lane for labels wider than their boxes."""

_LETTER_WIDTH = 0.0118
"""The width of a letter as a fraction of the longest step, including some room."""

_SHADE = "#F0F0F0"


@dataclass(frozen=True)
class Step:
    """The last step of one rank: the spans of its work, and its calls, in order of issue."""

    spans: tuple[Event, ...]
    calls: tuple[Event, ...]

    @property
    def start_ns(self) -> int:
        return self.spans[0].start_ns

    @property
    def length_ms(self) -> float:
        ends = [event.end_ns or event.start_ns for event in (*self.spans, *self.calls)]
        return (max(ends) - self.start_ns) / _MS

    def issued_in(self, name: str) -> int:
        """Count the calls issued during the span of this name."""
        return sum(
            span.start_ns <= call.start_ns and (span.end_ns is None or call.start_ns < span.end_ns)
            for span in self.spans
            if span.call == name
            for call in self.calls
        )


def step_lanes(
    runs: Mapping[str, TraceSource],
    *,
    rank: int = 0,
    first: str = "forward",
    over: str = "backward",
    title: str | None = None,
) -> Picture:
    """Draw the last step of `rank` in each run. A step begins with the span called `first`.

    Picture and text contain the number of calls issued within the span `over`. The text contains no times. A
    run without a span called `first` is left out.
    """
    steps = {
        one_line(name, 40): step
        for name, run in runs.items()
        if (step := last_step(find_trace(run), rank, first))
    }
    figure = new_figure(_WIDTH, max(1.0, 0.8 + 1.05 * len(steps)))
    axes = figure.add_subplot()
    longest_ms = max((step.length_ms for step in steps.values()), default=1.0)
    for index, step in enumerate(steps.values()):
        _draw_step(axes, step, index * (2 + _LANE_GAP), over, longest_ms)
    names = [f"{n}\n{s.issued_in(over)} of {len(s.calls)} in {over}" for n, s in steps.items()]
    _frame(axes, names, title)
    _legend(figure, over)
    lines = [_describe_step(name, step, over) for name, step in steps.items()]
    return Picture(figure, "\n".join([f"one step of rank {rank}:", *lines]))


def last_step(trace: Trace, rank: int, first: str) -> Step | None:
    """Return a rank's step, which begins with its last span called `first`, or None if there is none."""
    events = trace.of(rank)
    begins = [event.seq for event in events if event.op == "span" and event.call == first]
    if not begins:
        return None
    step = [event for event in events if event.seq >= begins[-1]]
    spans = tuple(event for event in step if event.op == "span")
    return Step(spans, tuple(event for event in step if event.op != "span"))


def _describe_step(name: str, step: Step, over: str) -> str:
    ops = sorted({call.op for call in step.calls})
    counts = [plural(sum(call.op == op for call in step.calls), op) for op in ops]
    inside = f"{step.issued_in(over)} issued while {over} runs"
    return f"  {name}: {', '.join([*counts, inside])}"


def _draw_step(axes: Axes, step: Step, top: float, over: str, longest_ms: float) -> None:
    """Draw the spans in the upper half of the lane, and the calls in rows in the lower half."""
    free_above = 0.0
    for span in step.spans:
        start, length = _extent_of(span, step.start_ns)
        axes.broken_barh(
            [(start, length)],
            (top + 0.1, _SPAN_HEIGHT),
            facecolor=SPAN.tint,
            edgecolor=SPAN.color,
            zorder=3,
        )
        label = one_line(span.call, 12)
        wide = (len(label) + 1) * _LETTER_WIDTH * longest_ms
        if length >= wide:
            _label(
                axes, label, start + length / 2, top + 0.1 + _SPAN_HEIGHT / 2, "center", "center"
            )
        else:
            free_above = max(start, free_above)
            _label(axes, label, free_above, top + 0.05, "left", "bottom")
            free_above += wide
        if span.call == over:
            axes.fill_between([start, start + length], top + 0.1, top + 2, color=_SHADE)
    free_from: list[float] = []
    for call in step.calls:
        start, length = _extent_of(call, step.start_ns)
        row = next((i for i, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[row : row + 1] = [start + length]
        row %= _MAX_ROWS
        axes.broken_barh(
            [(start, length)],
            (top + 0.85 + row * _ROW_HEIGHT, 0.8 * _ROW_HEIGHT),
            facecolor=COLLECTIVE.color,
            edgecolor="white",
            linewidth=0.3,
            zorder=3,
        )


def _label(axes: Axes, label: str, x: float, y: float, ha: str, va: str) -> None:
    axes.text(x, y, label, ha=ha, va=va, fontsize=8, color=INK, zorder=4, parse_math=False)


def _extent_of(event: Event, origin: int) -> tuple[float, float]:
    start = (event.start_ns - origin) / _MS
    end = start if event.end_ns is None else (event.end_ns - origin) / _MS
    return start, max(0.0, end - start)


def _frame(axes: Axes, names: list[str], title: str | None) -> None:
    height = 2 + _LANE_GAP
    axes.set_yticks([index * height + 1 for index in range(len(names))], names, parse_math=False)
    axes.set_ylim(max(1, len(names)) * height - _LANE_GAP + 0.1, -_SPACE_ABOVE)
    axes.set_xlim(left=0)
    axes.set_xlabel("time since the step began [ms]", fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=8.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if title:
        axes.set_title(one_line(title, 90), fontsize=10.5, loc="left", parse_math=False)


def _legend(figure: Figure, over: str) -> None:
    from matplotlib.patches import Patch

    marks = [
        Patch(
            facecolor=SPAN.tint,
            edgecolor=SPAN.color,
            label="time in the span, including waiting",
        ),
        Patch(facecolor=COLLECTIVE.color, label="a collective is in flight"),
        Patch(facecolor=_SHADE, label=f"while {over} runs"),
    ]
    figure.legend(handles=marks, loc="outside lower left", ncols=3, fontsize=8, frameon=False)
