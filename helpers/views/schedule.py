"""Draw the schedule of a pipeline: the microbatches of each stage over time, planned and measured.

    orders or Run -> schedule_times (lanes) -> schedule() -> Picture

A run is drawn twice: its order with ideal times, and below it the measured times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.palette import BACKWARD, FORWARD, INK, WAIT
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import clip, one_line
from helpers.views.schedule_times import (
    Lane,
    idle_share,
    max_held,
    measured_lanes,
    order_of,
    plan_lanes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Plan = Sequence[str | Sequence[str]]
"""Each rank's actions in order: "F0 F1 B0 B1", or a list; "0F0 4F0 ..." for several stages per rank."""

_WIDTH = 9.6
_HEIGHT = 0.78
_FILLS = {"F": FORWARD.tint, "B": BACKWARD.tint, "I": "#EDEBF7", "W": "#ADA6D4"}
_NAMES = {
    "F": "forward of a microbatch",
    "B": "backward",
    "I": "backward, for the input",
    "W": "backward, for the weights",
}
_PLANNED_TITLE = "time [forwards of one microbatch]"
_MEASURED_TITLE = "time since the first forward began [ms]"
_MAX_LINE_CHARS = 130
_MAX_DRAWN = 400


@dataclass(frozen=True)
class _Panel:
    title: str
    lanes: tuple[Lane, ...]
    unit: str


def schedule(plans: Mapping[str, Run | Trace | Plan], *, backward: float = 2.0) -> Picture:
    """Draw each plan with ideal times, and each run with ideal and measured times.

    A run's stages must have recorded spans called F0, B0, F1, ... If a rank has several stages ("0F0",
    "4F0"), the actions of its second stage have a prime, and so on. backward: the duration of a backward,
    relative to a forward. A stage "holds" the microbatches that have run forward but not yet backward, and
    the picture shows their maximum number. The text contains no measured times. Raises ValueError for a plan
    that never ends, and for a run without these spans.
    """
    panels: list[_Panel] = []
    lines: list[str] = []
    for given, plan in plans.items():
        name = one_line(given, 50)
        made = _panels(name, plan, backward)
        panels += made
        lines += _describe_schedule(name, made[0].lanes)
    stages = sum(len(panel.lanes) for panel in panels)
    figure = new_figure(_WIDTH, 0.5 + 0.32 * stages + 0.85 * len(panels))
    ratios = [len(panel.lanes) + 1.5 for panel in panels]
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=ratios)[:, 0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel)
    _legend(figure, {piece.kind for panel in panels for lane in panel.lanes for piece in lane})
    return Picture(figure, "\n".join(lines))


def _panels(name: str, plan: Run | Trace | Plan, backward: float) -> list[_Panel]:
    """Return the panels of a plan (ideal times), or of a run (ideal and measured times)."""
    if not isinstance(plan, Run | Trace):
        orders = [stage.split() if isinstance(stage, str) else list(stage) for stage in plan]
        ideal = plan_lanes(orders, backward)
        return [_Panel(f"{name}: {_bubble(ideal)}", ideal, _PLANNED_TITLE)]
    real = measured_lanes(trace_of(plan))
    if not any(real):
        raise ValueError(f"{name}: no rank of this run recorded spans named F0, B0, F1, ...")
    ideal = plan_lanes(order_of(real), backward)
    return [
        _Panel(f"{name}, predicted: {_bubble(ideal)}", ideal, _PLANNED_TITLE),
        _Panel(f"{name}, real: {_bubble(real)}", real, _MEASURED_TITLE),
    ]


def _bubble(lanes: Sequence[Lane]) -> str:
    share = idle_share([[(piece.start, piece.end) for piece in lane] for lane in lanes])
    return f"bubble {100 * share:.0f} %"


def _describe_schedule(name: str, lanes: Sequence[Lane]) -> list[str]:
    return [f"{name}: {_bubble(lanes)} predicted"] + [
        clip(
            f"  {_lane_word(lanes)} {rank} holds {max_held(order)}: {' '.join(order)}",
            _MAX_LINE_CHARS,
        )
        for rank, order in enumerate(order_of(lanes))
    ]


def _lane_word(lanes: Sequence[Lane]) -> str:
    """Return the word for a lane."""
    return "rank" if any(piece.stage for lane in lanes for piece in lane) else "stage"


def _draw_panel(axes: Axes, panel: _Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    pieces = [piece for lane in panel.lanes for piece in lane]
    length = max(piece.end for piece in pieces)
    begin = min(piece.start for piece in pieces)
    for place, lane in enumerate(panel.lanes):
        own = sorted({int(piece.stage) for piece in lane if piece.stage})
        axes.barh(
            place,
            length - begin,
            _HEIGHT,
            begin,
            facecolor=WAIT.tint,
            edgecolor=WAIT.color,
            linewidth=0.4,
            hatch=WAIT.hatch,
            zorder=1,
        )
        for piece in lane[:_MAX_DRAWN]:
            width = piece.end - piece.start
            axes.barh(
                place,
                width,
                _HEIGHT,
                piece.start,
                facecolor=_FILLS[piece.kind],
                edgecolor=INK,
                linewidth=0.8,
                zorder=2,
            )
            if width > 0.011 * length:
                middle = piece.start + width / 2
                primes = "'" * own.index(int(piece.stage)) if piece.stage else ""
                text = f"{piece.microbatch}{primes}"
                axes.text(
                    middle, place, text, ha="center", va="center", fontsize=8, color=INK, zorder=3
                )
    held = [max_held(order) for order in order_of(panel.lanes)]
    word = _lane_word(panel.lanes)
    names = [f"{word} {place}, holds {most}" for place, most in enumerate(held)]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(begin, begin + 1.01 * (length - begin))
    axes.set_xlabel(panel.unit, fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=8.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(panel.title, fontsize=10, loc="left", parse_math=False)


def _legend(figure: Figure, kinds: set[str]) -> None:
    from matplotlib.patches import Patch

    marks = [
        *(
            Patch(facecolor=_FILLS[kind], edgecolor=INK, label=name)
            for kind, name in _NAMES.items()
            if kind in kinds or kind in "FB"
        ),
        Patch(
            facecolor=WAIT.tint, edgecolor=WAIT.color, hatch=WAIT.hatch, label="idle: the bubble"
        ),
    ]
    figure.legend(handles=marks, loc="outside lower left", ncols=5, fontsize=8, frameon=False)
