"""Draw how ranks found each other: what each wrote into the store, and what it read there, in order.

    spans "set KEY", "wait KEY", "get KEY" -> steps_of() -> rendezvous() -> Picture

Notebook 01 hands `init_process_group` a store that records such a span for each of its calls.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.palette import INK, RECV, SEND, WAIT, Look
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import one_line, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 8.4
_STORE = -1.0
_MOST = 60
_LOOKS = {"set": SEND, "get": RECV}


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a rank on the store. op: "set", "get" or "wait"."""

    rank: int
    op: str
    key: str
    start_ns: int
    end_ns: int


def rendezvous(run_or_trace: Run | Trace, *, title: str | None = None) -> Picture:
    """Draw the calls on a store from left to right in the order in which they ended.

    An arrow up is a value that a rank writes, an arrow down one that it reads; a bar is a wait
    for a key that nobody has written yet. The first 60 calls are drawn. Raises ValueError for a
    run that recorded no such call.
    """
    trace = trace_of(run_or_trace)
    steps = steps_of(trace)
    if not steps:
        raise ValueError(
            "this run recorded no calls on a store: give init_process_group a store whose set, "
            "get and wait are inside span('set KEY'), span('get KEY') and span('wait KEY')."
        )
    figure = new_figure(_WIDTH, 0.62 * (trace.world_size + 1) + 1.0)
    axes = figure.add_subplot()
    moves = [step for step in steps if step.op != "wait"][:_MOST]
    _draw_frame(axes, trace.world_size, len(moves))
    _draw_waits(axes, steps, moves)
    for column, step in enumerate(moves):
        _draw_move(axes, column, step)
    if title:
        axes.set_title(one_line(title, 90), fontsize=10.5, loc="left", parse_math=False)
    return Picture(figure, _text(steps, len(moves)))


def steps_of(trace: Trace) -> tuple[Step, ...]:
    """Return the calls on a store that a trace holds as spans, by the time at which they ended."""
    steps = []
    for event in trace.spans:
        op, _, key = event.call.partition(" ")
        if op in {"set", "get", "wait"} and event.end_ns is not None:
            steps.append(Step(event.rank, op, key, event.start_ns, event.end_ns))
    return tuple(sorted(steps, key=lambda step: (step.end_ns, step.rank)))


def _draw_frame(axes: Axes, world_size: int, columns: int) -> None:
    axes.set_xlim(-1, max(columns, 1))
    axes.set_ylim(world_size - 0.4, _STORE - 0.45)
    names = ["store", *(f"rank {rank}" for rank in range(world_size))]
    axes.set_yticks([_STORE, *range(world_size)], names)
    for rank in range(world_size):
        axes.axhline(rank, color="#CCCCCC", linewidth=1, zorder=1)
    axes.axhline(_STORE, color=INK, linewidth=5, zorder=1, solid_capstyle="butt")
    axes.set_xticks([])
    axes.set_xlabel("calls on the store, in the order in which they ended", fontsize=9)
    axes.tick_params(length=0, labelsize=9)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


def _draw_move(axes: Axes, column: int, step: Step) -> None:
    look: Look = _LOOKS[step.op]
    ends = [(column, step.rank), (column, _STORE + 0.08)]
    if step.op == "get":
        ends.reverse()
    axes.annotate(
        "",
        xy=ends[1],
        xytext=ends[0],
        arrowprops={
            "arrowstyle": "-|>",
            "color": look.color,
            "linestyle": look.line,
            "linewidth": 1.3,
            "shrinkA": 0,
            "shrinkB": 0,
        },
        zorder=3,
    )
    axes.plot([column], [step.rank], marker="o", color=look.color, markersize=4, zorder=4)
    axes.text(
        column,
        step.rank + 0.13,
        f"{step.op}\n…{one_line(step.key[-3:], 3)}",
        ha="center",
        va="top",
        fontsize=7.5,
        color=look.color,
        parse_math=False,
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
    )


def _draw_waits(axes: Axes, steps: Sequence[Step], moves: Sequence[Step]) -> None:
    """Draw each wait during which other ranks moved: from the rank's last call to its next."""
    for wait in (step for step in steps if step.op == "wait"):
        own = [column for column, step in enumerate(moves) if step.rank == wait.rank]
        before = [column for column in own if moves[column].end_ns <= wait.start_ns]
        after = [column for column in own if moves[column].start_ns >= wait.end_ns]
        if before and after and after[0] - before[-1] > 1:
            axes.plot(
                [before[-1] + 0.12, after[0] - 0.12],
                [wait.rank, wait.rank],
                color=WAIT.color,
                linewidth=6,
                alpha=0.55,
                solid_capstyle="butt",
                zorder=2,
            )
            middle = (before[-1] + after[0]) / 2
            axes.text(
                middle,
                wait.rank,
                "waits",
                ha="center",
                va="center",
                fontsize=7.5,
                color=INK,
                zorder=6,
                bbox={"facecolor": "white", "edgecolor": WAIT.color, "pad": 1.2, "linewidth": 0.6},
            )


def _text(steps: Sequence[Step], drawn: int) -> str:
    """Say what each rank wrote and read; without waits, whose number is a matter of time."""
    moves = [step for step in steps if step.op != "wait"]
    start = os.path.commonprefix([step.key for step in moves])
    by_rank: dict[int, list[str]] = defaultdict(list)
    for step in moves:
        by_rank[step.rank].append(f"{step.op} …{one_line(step.key[len(start) :], 40)}")
    lines = [f"{plural(len(moves), 'call')} on the store; every key begins with {one_line(start)}"]
    lines += [f"rank {rank}: {', '.join(by_rank[rank])}" for rank in sorted(by_rank)]
    if drawn < len(moves):
        lines.append(f"not drawn: {plural(len(moves) - drawn, 'call')}")
    return "\n".join(lines)
