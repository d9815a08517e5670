"""Draw the rounds of point-to-point algorithms: who sends to whom in the first round, the second, ...

    Run -> one_port.port_rounds -> rounds() -> Picture

A timeline shows when calls were made; this shows what depends on what, and is the same in each run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Message, Trace
from helpers.views.one_port import port_rounds
from helpers.views.palette import FAINT, INK, SEND
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import ELLIPSIS, one_line, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOTHING = "no runs, so nothing is drawn"
_MOST_ROUNDS = 32
_MOST_ARROWS = 16
_WIDEST = 10.0
_Rounds = tuple[tuple[Message, ...], ...]


def rounds(runs: Mapping[str, Run | Trace]) -> Picture:
    """Draw each run in a panel of its own, under its label: a column for each round of messages.

    In a round each rank sends one message at most and takes one at most. The first 32 are drawn.
    Raises TypeError for anything but runs or traces.
    """
    traces = {label: trace_of(run) for label, run in runs.items()}
    if not traces:
        return _empty()
    found = {label: port_rounds(trace) for label, trace in traces.items()}
    widths = [0.9 + 0.5 * min(max(1, len(those)), _MOST_ROUNDS) for those in found.values()]
    widest = max(trace.world_size for trace in traces.values())
    figure = new_figure(min(_WIDEST, max(4.0, sum(widths))), min(8.0, 1.1 + 0.3 * max(widest, 3)))
    panels = figure.subplots(1, len(traces), squeeze=False, width_ratios=widths)[0]
    for axes, (label, trace) in zip(panels, traces.items(), strict=True):
        _draw(axes, label, trace.world_size, found[label][:_MOST_ROUNDS])
    lines = [line for label, trace in traces.items() for line in _text(label, trace, found[label])]
    return Picture(figure, "\n".join(lines))


def _empty() -> Picture:
    figure = new_figure(4.0, 0.8)
    axes = figure.add_subplot()
    axes.axis("off")
    axes.text(0.5, 0.5, _NOTHING, ha="center", va="center", color=FAINT)
    return Picture(figure, _NOTHING)


def _draw(axes: Axes, label: str, world_size: int, those: _Rounds) -> None:
    columns = max(1, len(those))
    for rank in range(world_size):
        axes.plot([0, columns], [rank, rank], color=FAINT, linewidth=0.7, zorder=1)
    for column in range(columns + 1):
        axes.plot(
            [column] * world_size, range(world_size), "o", color=INK, markersize=3.5, zorder=3
        )
    for column, messages in enumerate(those):
        for message in messages:
            axes.annotate(
                "",
                xy=(column + 1, message.dst),
                xytext=(column, message.src),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": SEND.color,
                    "linewidth": 1.3,
                    "shrinkA": 2,
                    "shrinkB": 2,
                },
                zorder=2,
            )
    step = -(-columns // 8)
    axes.set_xticks(
        [column + 0.5 for column in range(0, columns, step)],
        [str(column + 1) for column in range(0, columns, step)] if those else [""],
    )
    axes.set_yticks(range(world_size), [f"rank {rank}" for rank in range(world_size)])
    axes.set_ylim(world_size - 0.5, -0.5)
    axes.set_xlim(-0.15, columns + 0.15)
    axes.set_xlabel("round", fontsize=9)
    axes.tick_params(length=0, labelsize=8.5)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title(one_line(label, 40), fontsize=9.5, loc="left", parse_math=False)


def _text(label: str, trace: Trace, those: _Rounds) -> list[str]:
    counted = plural(len(those), "round")
    lines = [f"{one_line(label)}: {plural(trace.world_size, 'rank')}, {counted}"]
    for number, messages in enumerate(those[:_MOST_ROUNDS], 1):
        shown = ", ".join(f"{m.src} → {m.dst}" for m in messages[:_MOST_ARROWS])
        more = f", {ELLIPSIS}" if len(messages) > _MOST_ARROWS else ""
        lines.append(f"  {number}: {shown}{more}")
    if len(those) > _MOST_ROUNDS:
        lines.append(f"  {ELLIPSIS} and {len(those) - _MOST_ROUNDS:,} more")
    return lines
