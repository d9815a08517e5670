"""Draw when threads or processes were working, if each did many small pieces of work.

    stamps of each worker (when a piece ended) -> pieces -> work_lanes() -> Picture

If a piece took many times as long as the worker's other pieces, the worker was waiting for the GIL or
for a core. Such a piece is drawn as waiting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from helpers.views.palette import INK, SPAN, WAIT
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Stamps = Sequence[float]
"""Times in seconds, ascending: when a worker began, and when each of its pieces ended."""

WAIT_FACTOR = 5.0
"""A piece counts as waiting if it took this many times the worker's median."""

_WIDTH = 9.6
_LANE_HEIGHT = 0.72


def work_lanes(panels: Mapping[str, Sequence[Stamps]], *, worker: str = "worker") -> Picture:
    """Draw one lane for each worker of each panel; all panels share one time axis.

    panels: from a title to each worker's stamps. Times are relative to a panel's first stamp. The text
    names panels and lanes, but contains no measured value. Raises ValueError if stamps do not rise.
    """
    lanes = {
        one_line(title): [join_stretches(stamps) for stamps in each]
        for title, each in panels.items()
    }
    rows = sum(len(each) for each in lanes.values())
    figure = new_figure(_WIDTH, 0.8 + 0.34 * rows + 0.45 * len(lanes))
    grid = figure.subplots(
        max(1, len(lanes)),
        1,
        squeeze=False,
        sharex=True,
        height_ratios=[len(each) + 0.6 for each in lanes.values()] or None,
    )[:, 0]
    for axes, (title, each) in zip(grid, lanes.items(), strict=False):
        _draw_panel(axes, title, each, worker)
    grid[-1].set_xlim(0, 1.02e3 * max(map(_total_length, lanes.values()), default=0) or 1)
    grid[-1].set_xlabel("time since the first began [ms]")
    _add_legend(figure)
    text = [
        f"{title}: {plural(len(each), 'lane')}, at work and waiting"
        for title, each in lanes.items()
    ]
    return Picture(figure, "\n".join(text) or "no worker worked, so nothing is drawn")


def join_stretches(stamps: Stamps) -> list[tuple[float, float, bool]]:
    """Join a worker's pieces into stretches (start, end, working?), each as long as possible."""
    if any(later < sooner for sooner, later in zip(stamps, stamps[1:], strict=False)):
        raise ValueError("stamps must rise: append perf_counter() after each piece of work.")
    pieces = list(zip(stamps, stamps[1:], strict=False))
    if not pieces:
        return []
    long = WAIT_FACTOR * median(end - start for start, end in pieces)
    stretches: list[tuple[float, float, bool]] = []
    for start, end in pieces:
        works = end - start <= long
        if stretches and stretches[-1][2] == works:
            start = stretches.pop()[0]
        stretches.append((start, end, works))
    return stretches


def _first_start(lanes: Sequence[Sequence[tuple[float, float, bool]]]) -> float:
    return min((lane[0][0] for lane in lanes if lane), default=0.0)


def _total_length(lanes: Sequence[Sequence[tuple[float, float, bool]]]) -> float:
    return max((lane[-1][1] for lane in lanes if lane), default=0.0) - _first_start(lanes)


def _draw_panel(
    axes: Axes, title: str, lanes: Sequence[Sequence[tuple[float, float, bool]]], worker: str
) -> None:
    begin = _first_start(lanes)
    for row, lane in enumerate(lanes):
        for start, end, works in lane:
            axes.barh(
                row,
                (end - start) * 1e3,
                _LANE_HEIGHT,
                (start - begin) * 1e3,
                facecolor="#8F8F8F" if works else WAIT.tint,
                edgecolor=SPAN.color if works else WAIT.color,
                hatch="" if works else WAIT.hatch,
                linewidth=0.5,
            )
    axes.set_yticks(range(len(lanes)), [f"{worker} {row}" for row in range(len(lanes))])
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=10, parse_math=False)


def _add_legend(figure: object) -> None:
    from matplotlib.patches import Patch

    marks = [
        Patch(facecolor="#8F8F8F", edgecolor=INK, label="at work"),
        Patch(
            facecolor=WAIT.tint,
            edgecolor=WAIT.color,
            hatch=WAIT.hatch,
            label="waiting for the GIL, or for a core",
        ),
    ]
    figure.legend(handles=marks, loc="outside lower left", ncols=2, fontsize=8, frameon=False)  # type: ignore[attr-defined]
