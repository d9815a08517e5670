"""Draw the ranks of a world as a grid, each cell in the color, hatch and letter of its group.

    Run | Trace | groups -> groups_of() -> panels_of() (groups that share no rank) -> rank_grid() -> Picture

Notebooks call `rank_grid` with the groups themselves, or with a run: then they are the groups in
which its ranks talked.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.by_host import starts
from helpers.views.palette import COLLECTIVE, FAILURE, FAINT, INK, RECV, SEND, SPAN, WAIT, Look
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Group = tuple[int, ...]
Panel = tuple[Group, ...]

_LOOKS = (SEND, WAIT, RECV, COLLECTIVE, FAILURE, SPAN)
_CELL = 0.86
_NO_GROUP = "no group"


def rank_grid(
    what: Run | Trace | Sequence[Sequence[int]],
    *,
    cols: int | None = None,
    title: str | None = None,
) -> Picture:
    """Draw ranks row by row, `cols` to a row, and which group each of them is in.

    what: a list of groups, each a list of global ranks; or a run, for the groups that its ranks
    used. Groups that share a rank are in different panels. Below each rank stand its group's
    letter and its rank within that group. Without `cols`, a row is a host, where a run
    was on several of one size, else as long as the longest group of neighboring ranks. Raises ValueError if
    `cols` is not positive.
    """
    groups = groups_of(what)
    world_size = _world_size(what, groups)
    hosts = _hosts_as_rows(what, cols)
    if hosts:
        cols = world_size // len(hosts)
    cols = _row_length(groups, world_size) if cols is None else cols
    if cols < 1:
        raise ValueError(f"a grid has at least one column; got cols={cols}")
    panels = panels_of(groups) or ((),)
    rows = -(-world_size // cols)
    figure = new_figure(
        max(4.0, (cols * _CELL + 0.7) * len(panels)), rows * _CELL + (1.1 if title else 0.8)
    )
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw(axes, panel, world_size, rows, cols, hosts)
    if title:
        figure.suptitle(one_line(title, 90), fontsize=10.5, x=0.02, ha="left", parse_math=False)
    return Picture(figure, _text(panels, world_size, rows, cols, hosts))


def groups_of(what: Run | Trace | Sequence[Sequence[int]]) -> tuple[Group, ...]:
    """Return the groups, each once, in the order of their ranks."""
    if isinstance(what, (Run, Trace)):
        return tuple(sorted({event.group_ranks for event in trace_of(what).calls}))
    return tuple(sorted({tuple(int(rank) for rank in group) for group in what}))


def panels_of(groups: Sequence[Group]) -> tuple[Panel, ...]:
    """Put each group into the first panel in which no group has one of its ranks."""
    panels: list[list[Group]] = []
    for group in groups:
        free = (p for p in panels if not any(set(group) & set(other) for other in p))
        panel = next(free, None)
        if panel is None:
            panels.append([group])
        else:
            panel.append(group)
    return tuple(tuple(panel) for panel in panels)


def _world_size(what: Run | Trace | Sequence[Sequence[int]], groups: Sequence[Group]) -> int:
    if isinstance(what, (Run, Trace)):
        return what.world_size
    return 1 + max((rank for group in groups for rank in group), default=0)


def _hosts_as_rows(what: Run | Trace | Sequence[Sequence[int]], cols: int | None) -> list[str]:
    """Return the hosts, where each can be a row: all have as many ranks, one host after another."""
    if not isinstance(what, (Run, Trace)) or not (trace := trace_of(what)).hosts:
        return []
    sizes = {len(ranks) for ranks in trace.by_host.values()}
    in_turn = len(starts(trace.hosts)) == len(trace.by_host)
    return list(trace.by_host) if in_turn and len(sizes) == 1 and cols in {None, *sizes} else []


def _row_length(groups: Sequence[Group], world_size: int) -> int:
    rows = [g for g in groups if g == tuple(range(g[0], g[0] + len(g))) and 1 < len(g) < world_size]
    return max(map(len, rows), default=world_size)


def _draw(
    axes: Axes, panel: Panel, world_size: int, rows: int, cols: int, hosts: Sequence[str]
) -> None:
    for rank in range(world_size):
        index = next((i for i, group in enumerate(panel) if rank in group), None)
        row, column = divmod(rank, cols)
        label = _NO_GROUP
        if index is not None:
            label = f"{_letter(index)} · {panel[index].index(rank)}"
        _draw_cell(axes, column, row, None if index is None else _LOOKS[index % len(_LOOKS)])
        axes.text(column, row - 0.06, str(rank), ha="center", va="center", fontsize=14, color=INK)
        axes.text(column, row + 0.29, label, ha="center", va="center", fontsize=8.5, color=INK)
    axes.set_xlim(-0.5, cols - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_xticks(range(cols))
    axes.set_yticks(range(rows))
    if hosts:
        axes.set_yticklabels([one_line(host, 20) for host in hosts], parse_math=False)
    axes.set_xlabel("column (below each rank: group · rank in it)", fontsize=8)
    axes.set_ylabel("host" if hosts else "row", fontsize=8.5)
    axes.tick_params(length=0, labelsize=8.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_cell(axes: Axes, column: int, row: int, look: Look | None) -> None:
    from matplotlib.patches import Rectangle

    frame = Rectangle(
        (column - 0.46, row - 0.46),
        0.92,
        0.92,
        facecolor=look.tint if look else "white",
        edgecolor=look.color if look else FAINT,
        linewidth=1.6,
        linestyle="-" if look else ":",
    )
    axes.add_patch(frame)
    if look:  # hatched at the edge only: figures on a hatch are hard to read
        band = Rectangle(
            (column - 0.46, row - 0.46),
            0.92,
            0.14,
            facecolor="white",
            edgecolor=look.color,
            hatch=look.hatch,
            linewidth=0.8,
        )
        axes.add_patch(band)


def _letter(index: int) -> str:
    return ascii_uppercase[index] if index < len(ascii_uppercase) else f"G{index}"


def _text(
    panels: Sequence[Panel], world_size: int, rows: int, cols: int, hosts: Sequence[str]
) -> str:
    names = ", ".join(one_line(host, 60) for host in hosts)
    lines = [
        f"{world_size} ranks in {rows} x {cols}"
        + (f", a row for each host: {names}" if hosts else "")
    ]
    for panel in panels:
        named = [f"{_letter(i)} {' '.join(map(str, group))}" for i, group in enumerate(panel)]
        lines.append(f"groups: {' | '.join(named) or 'none'}")
    return "\n".join(lines)
