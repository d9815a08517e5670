"""Draw the ranks of a world as grids of cells, each with the color, hatch and letter of its group.

groups | Run | Trace -> groups_of() -> panels_of() (groups without common ranks) -> rank_grid()
Run in which each rank returned {dimension: ranks of its group} -> lines_of()    -> mesh_groups()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.by_host import first_ranks
from helpers.views.palette import COLLECTIVE, FAILURE, FAINT, INK, RECV, SEND, SPAN, WAIT, Look
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import one_line, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Group = tuple[int, ...]
Panel = tuple[Group, ...]

_LOOKS = (SEND, WAIT, RECV, COLLECTIVE, FAILURE, SPAN)
_CELL_INCHES = 0.72
_NO_GROUP = "no group"


def rank_grid(
    source: Run | Trace | Sequence[Sequence[int]],
    *,
    cols: int | None = None,
    title: str | None = None,
) -> Picture:
    """Draw ranks row by row, `cols` per row, with the group of each rank.

    source: a list of groups, each a list of global ranks; or a run, for the groups used by its ranks. Groups
    that share a rank are in different panels. Below each rank are its group's letter and its rank within the
    group. Without `cols`, each row is a host if the run was on several hosts of one size. Otherwise rows have
    the length of the longest group of neighboring ranks. Raises ValueError if `cols` is not positive.
    """
    groups = groups_of(source)
    trace = trace_of(source) if isinstance(source, (Run, Trace)) else None
    last = max((rank for group in groups for rank in group), default=0)
    world_size = trace.world_size if trace is not None else last + 1
    hosts = _hosts_as_rows(trace, cols) if trace is not None else []
    if cols is None:
        cols = world_size // len(hosts) if hosts else _row_length(groups, world_size)
    if cols < 1:
        raise ValueError(f"a grid must have at least one column; got cols={cols}")
    panels = panels_of(groups) or ((),)
    rows = [one_line(host, 60) for host in hosts] or [
        f"row {row}" for row in range(-(-world_size // cols))
    ]
    figure = _figure([("", panel) for panel in panels], world_size, cols, rows, title)
    by_host = f", a row for each host: {', '.join(rows)}" if hosts else ""
    lines = [f"groups: {_name_groups(panel) or 'none'}" for panel in panels]
    return Picture(
        figure, "\n".join([f"{world_size} ranks in {len(rows)} x {cols}{by_host}", *lines])
    )


def mesh_groups(run: Run, *, per_host: int, title: str | None = None) -> Picture:
    """Draw the groups of each dimension of a mesh. Each row is a host.

    run.values[rank]: the ranks of its group for each dimension, {"tp": [4, 5], ...}. Instead of a list,
    a dimension may have a tuple that contains the list. per_host: number of ranks on a host. Below each rank
    are its group's letter and its position in the group. Raises ValueError for other values.
    """
    if per_host < 1:
        raise ValueError(f"a host must have at least one rank; got per_host={per_host}")
    lines = lines_of(run)
    panels, words = [], [f"groups of each dimension, {plural(per_host, 'rank')} on a host:"]
    for name, groups in lines.items():
        sizes = " and ".join(map(str, sorted({len(group) for group in groups})))
        panels.append((f"{one_line(name, 12)}: {plural(len(groups), 'group')} of {sizes}", groups))
        across = sum(len({rank // per_host for rank in group}) > 1 for group in groups)
        words.append(
            f"  {one_line(name)}: {_name_groups(groups)}; {across} of {len(groups)} cross hosts"
        )
    hosts = [f"host {host}" for host in range(-(-run.world_size // per_host))]
    return Picture(_figure(panels, run.world_size, per_host, hosts, title), "\n".join(words))


def groups_of(source: Run | Trace | Sequence[Sequence[int]]) -> tuple[Group, ...]:
    """Return the groups, each once, in the order of their ranks."""
    if isinstance(source, (Run, Trace)):
        return tuple(sorted({event.group_ranks for event in trace_of(source).calls}))
    return tuple(sorted({tuple(int(rank) for rank in group) for group in source}))


def panels_of(groups: Sequence[Group]) -> tuple[Panel, ...]:
    """Put each group into the first panel with which it has no rank in common."""
    panels: list[list[Group]] = []
    for group in groups:
        free = (p for p in panels if not any(set(group) & set(other) for other in p))
        panel = next(free, None)
        if panel is None:
            panels.append([group])
        else:
            panel.append(group)
    return tuple(tuple(panel) for panel in panels)


def lines_of(run: Run) -> dict[str, Panel]:
    """Return the groups of each dimension, each once, in the order of their ranks."""
    found: dict[str, set[Group]] = {}
    for value in run.values:
        if not isinstance(value, Mapping) or not value:
            raise ValueError("each rank must return its groups: {'tp': [0, 1], 'dp': [0, 2]}.")
        for name, given in value.items():
            found.setdefault(str(name), set()).add(_as_ranks(given))
    return {name: tuple(sorted(groups)) for name, groups in found.items()}


def _as_ranks(values: Any) -> Group:
    if isinstance(values, tuple):
        values = next((part for part in values if isinstance(part, list)), values)
    if isinstance(values, Sequence) and all(isinstance(rank, int) for rank in values):
        return tuple(values)
    raise ValueError(f"the ranks of a group are a list of numbers, not {type(values).__name__}.")


def _hosts_as_rows(trace: Trace, cols: int | None) -> list[str]:
    """Return the hosts if each can be a row, that is, if all have the same number of consecutive ranks."""
    sizes = {len(ranks) for ranks in trace.by_host.values()} if trace.hosts else set()
    in_turn = len(first_ranks(trace.hosts)) == len(trace.by_host)
    return list(trace.by_host) if in_turn and len(sizes) == 1 and cols in {None, *sizes} else []


def _row_length(groups: Sequence[Group], world_size: int) -> int:
    rows = [g for g in groups if g == tuple(range(g[0], g[0] + len(g))) and 1 < len(g) < world_size]
    return max(map(len, rows), default=world_size)


def _figure(
    panels: Sequence[tuple[str, Panel]],
    world_size: int,
    cols: int,
    rows: Sequence[str],
    title: str | None,
) -> Figure:
    """Draw the same ranks once for each panel, with its heading and groups."""
    width = max(2.4, cols * _CELL_INCHES + 0.3) * len(panels) + 0.5
    figure = new_figure(width, len(rows) * _CELL_INCHES + 0.4 + 0.25 * bool(title))
    figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (heading, groups) in zip(grid, panels, strict=True):
        for rank in range(world_size):
            _draw_rank(axes, rank, *divmod(rank, cols), groups)
        axes.set_xlim(-0.5, cols - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_aspect("equal")
        axes.set_xticks([])
        axes.set_yticks(range(len(rows)), [])
        axes.tick_params(length=0, labelsize=8.5)
        axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
        axes.set_title(heading, fontsize=9.5, parse_math=False)
    grid[0].set_yticklabels([one_line(row, 20) for row in rows], parse_math=False)
    if title:
        figure.suptitle(one_line(title, 90), fontsize=10.5, x=0.02, ha="left", parse_math=False)
    return figure


def _draw_rank(axes: Axes, rank: int, row: int, column: int, groups: Panel) -> None:
    """Draw a cell: the rank and, below it, its group's letter and its rank within the group."""
    from matplotlib.patches import Rectangle

    index = next((i for i, group in enumerate(groups) if rank in group), None)
    look: Look | None = None
    label = _NO_GROUP
    if index is not None:
        look = _LOOKS[index % len(_LOOKS)]
        label = f"{_group_letter(index)} · {groups[index].index(rank)}"
    corner = column - 0.46, row - 0.46
    axes.add_patch(
        Rectangle(
            corner, 0.92, 0.92, facecolor=look.tint if look else "white", linewidth=1.6,
            edgecolor=look.color if look else FAINT, linestyle="-" if look else ":",
        )
    )  # fmt: skip
    if look:  # hatch only the edge, because digits on a hatched area are hard to read
        axes.add_patch(
            Rectangle(
                corner, 0.92, 0.14, facecolor="white", edgecolor=look.color, hatch=look.hatch,
                linewidth=0.8,
            )
        )  # fmt: skip
    axes.text(column, row - 0.05, str(rank), ha="center", va="center", fontsize=13, color=INK)
    axes.text(column, row + 0.3, label, ha="center", va="center", fontsize=8, color=INK)


def _group_letter(index: int) -> str:
    return ascii_uppercase[index] if index < len(ascii_uppercase) else f"G{index}"


def _name_groups(groups: Panel) -> str:
    return " | ".join(f"{_group_letter(i)} {' '.join(map(str, g))}" for i, g in enumerate(groups))
