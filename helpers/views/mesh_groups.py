"""Draw the groups of a device mesh, a panel for each dimension: ranks as cells, hosts as rows.

Run in which each rank returned {dimension: ranks of its group} -> lines_of() -> mesh_groups() -> Picture
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from helpers.ranks.run import Run
from helpers.views.palette import INK
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line, plural
from helpers.views.rank_grid import _LOOKS, Group, _draw_cell, _letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL = 0.62


def mesh_groups(run: Run, *, per_host: int, title: str | None = None) -> Picture:
    """Draw, for each dimension of a mesh, which ranks form a group; a row is a host.

    run.values[rank]: the ranks of its group for each dimension, {"tp": [4, 5], ...}, or for each
    dimension a tuple that holds such a list. per_host: ranks on a host. Below each rank stand its
    group's letter and its place in the group. Raises ValueError for other values.
    """
    if per_host < 1:
        raise ValueError(f"a host has at least one rank; got per_host={per_host}")
    lines = lines_of(run)
    hosts = -(-run.world_size // per_host)
    width = max(2.2, per_host * _CELL + 0.3)
    figure = new_figure(width * len(lines) + 0.4, hosts * _CELL + 0.4 + 0.25 * bool(title))
    panels = figure.subplots(1, len(lines), squeeze=False)[0]
    for axes, (name, groups) in zip(panels, lines.items(), strict=True):
        _draw(axes, groups, run.world_size, per_host)
        axes.set_title(f"{one_line(name, 12)}: {_sizes(groups)}", fontsize=9.5, parse_math=False)
    panels[0].set_ylabel("host", fontsize=9)
    if title:
        figure.suptitle(one_line(title, 90), fontsize=10.5, x=0.02, ha="left", parse_math=False)
    return Picture(figure, _text(lines, per_host))


def lines_of(run: Run) -> dict[str, tuple[Group, ...]]:
    """Return the groups of each dimension, each once, in the order of their ranks."""
    found: dict[str, set[Group]] = {}
    for value in run.values:
        if not isinstance(value, Mapping) or not value:
            raise ValueError("each rank must return its groups: {'tp': [0, 1], 'dp': [0, 2]}.")
        for name, given in value.items():
            found.setdefault(str(name), set()).add(_ranks(given))
    return {name: tuple(sorted(groups)) for name, groups in found.items()}


def _ranks(given: Any) -> Group:
    if isinstance(given, tuple):
        given = next((part for part in given if isinstance(part, list)), given)
    if isinstance(given, Sequence) and all(isinstance(rank, int) for rank in given):
        return tuple(given)
    raise ValueError(f"the ranks of a group are a list of numbers, not {type(given).__name__}.")


def _draw(axes: Axes, groups: Sequence[Group], world_size: int, per_host: int) -> None:
    for rank in range(world_size):
        index = next((i for i, group in enumerate(groups) if rank in group), None)
        row, column = divmod(rank, per_host)
        look = None if index is None else _LOOKS[index % len(_LOOKS)]
        _draw_cell(axes, column, row, look)
        label = "" if index is None else f"{_letter(index)} · {groups[index].index(rank)}"
        axes.text(column, row - 0.05, str(rank), ha="center", va="center", fontsize=12, color=INK)
        axes.text(column, row + 0.3, label, ha="center", va="center", fontsize=7.5, color=INK)
    axes.set_xlim(-0.5, per_host - 0.5)
    axes.set_ylim(-(-world_size // per_host) - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks(range(-(-world_size // per_host)))
    axes.tick_params(length=0, labelsize=8.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _sizes(groups: Sequence[Group]) -> str:
    sizes = sorted({len(group) for group in groups})
    of = " and ".join(map(str, sizes))
    return f"{plural(len(groups), 'group')} of {of}"


def _text(lines: Mapping[str, Sequence[Group]], per_host: int) -> str:
    head = f"groups of each dimension, {plural(per_host, 'rank')} on a host:"
    rows = []
    for name, groups in lines.items():
        named = " | ".join(f"{_letter(i)} {' '.join(map(str, g))}" for i, g in enumerate(groups))
        across = sum(len({rank // per_host for rank in group}) > 1 for group in groups)
        rows.append(f"  {one_line(name)}: {named}; {across} of {len(groups)} cross hosts")
    return "\n".join([head, *rows])
