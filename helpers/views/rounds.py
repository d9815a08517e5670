"""Draw the rounds of point-to-point algorithms, with the messages of each round.

    Run -> one_port.port_rounds -> rounds() -> Picture

A timeline shows the times of calls, whereas rounds show the dependencies and are the same in each run.
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

_MAX_ROUNDS = 32
_ARROW = {"arrowstyle": "-|>", "color": SEND.color, "linewidth": 1.3, "shrinkA": 2, "shrinkB": 2}
_Rounds = tuple[tuple[Message, ...], ...]


def rounds(runs: Mapping[str, Run | Trace]) -> Picture:
    """Draw each run in a separate panel, under its label, with a column for each round of messages.

    In a round, each rank sends at most one message and receives at most one. The first 32 rounds are drawn.
    Raises TypeError for anything but runs or traces, and ValueError if there are none.
    """
    traces = {label: trace_of(run) for label, run in runs.items()}
    if not traces:
        raise ValueError('rounds needs at least one run: {"a ring": run}.')
    found = {label: port_rounds(trace) for label, trace in traces.items()}
    widths = [0.9 + 0.5 * min(max(1, len(those)), _MAX_ROUNDS) for those in found.values()]
    most = max(3, *(trace.world_size for trace in traces.values()))
    figure = new_figure(min(10.0, max(4.0, sum(widths))), min(8.0, 1.1 + 0.3 * most))
    panels = figure.subplots(1, len(traces), squeeze=False, width_ratios=widths)[0]
    lines: list[str] = []
    for axes, (label, trace) in zip(panels, traces.items(), strict=True):
        _draw_rounds(axes, trace.world_size, found[label][:_MAX_ROUNDS])
        axes.set_title(one_line(label, 40), fontsize=9.5, loc="left", parse_math=False)
        lines += _describe_rounds(label, trace, found[label])
    return Picture(figure, "\n".join(lines))


def _draw_rounds(axes: Axes, world_size: int, rounds: _Rounds) -> None:
    columns, ranks = max(1, len(rounds)), range(world_size)
    for rank in ranks:
        axes.plot([0, columns], [rank, rank], color=FAINT, linewidth=0.7, zorder=1)
        dots = range(columns + 1)
        axes.plot(dots, [rank] * len(dots), "o", color=INK, markersize=3.5, zorder=3)
    for column, messages in enumerate(rounds):
        for m in messages:
            axes.annotate("", (column + 1, m.dst), (column, m.src), arrowprops=_ARROW, zorder=2)
    shown = range(0, len(rounds), -(-columns // 8))
    axes.set_xticks([column + 0.5 for column in shown], [str(column + 1) for column in shown])
    axes.set_yticks(ranks, [f"rank {rank}" for rank in ranks])
    axes.set_ylim(world_size - 0.5, -0.5)
    axes.set_xlim(-0.15, columns + 0.15)
    axes.set_xlabel("round", fontsize=9)
    axes.tick_params(length=0, labelsize=8.5)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)


def _describe_rounds(label: str, trace: Trace, those: _Rounds) -> list[str]:
    counted = plural(len(those), "round")
    lines = [f"{one_line(label)}: {plural(trace.world_size, 'rank')}, {counted}"]
    for number, messages in enumerate(those[:_MAX_ROUNDS], 1):
        lines.append(f"  {number}: {', '.join(f'{m.src} → {m.dst}' for m in messages)}")
    if len(those) > _MAX_ROUNDS:
        lines.append(f"  {ELLIPSIS} and {len(those) - _MAX_ROUNDS:,} more")
    return lines
