"""Draw which process started which, and write the same as an indented list.

parents: process id -> that of its parent, names: process id -> label  ->  process_tree() -> Picture
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from helpers.views.palette import FAINT, INK, SPAN
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOX = (1.0, 0.6)
_COLUMN = 1.6
_INCHES = 1.25
_ROW_INCHES = 0.55


def process_tree(parents: Mapping[int, int], names: Mapping[int, str]) -> Picture:
    """Draw the named processes from left to right, each next to its parent, in the order of `names`.

    A process whose parent is not named begins a tree of its own. The text leaves process ids out.
    Raises ValueError if no process is named, or if one would be its own ancestor.
    """
    if not names:
        raise ValueError("process_tree was given no names: give {process id: label}.")
    tree, rows = _placed(parents, names)
    depth = 1 + max(level for _, level in tree)
    figure = new_figure(_INCHES * _COLUMN * depth, _ROW_INCHES * (1 + max(rows.values())) + 0.4)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-0.1, _COLUMN * depth - (_COLUMN - _BOX[0]) + 0.1)
    axes.set_ylim(max(rows.values()) + 0.5, -0.5)
    for pid, level in tree:
        spot = (level * _COLUMN, rows[pid])
        if parents.get(pid) in rows:
            _draw_branch(axes, rows[parents[pid]], spot)
        _draw_box(axes, one_line(names[pid], 20), f"process {pid}", spot)
    lines = [f"{'  ' * (level + 1)}{one_line(names[pid])}" for pid, level in tree]
    return Picture(figure, "\n".join([f"tree of {plural(len(tree), 'process')}:", *lines]))


def _placed(
    parents: Mapping[int, int], names: Mapping[int, str]
) -> tuple[list[tuple[int, int]], dict[int, float]]:
    """Return (process id, level), each process after its parent and before its siblings; and the rows.

    Each leaf has a row of its own, and a parent is in the middle of its children.
    """
    tree: list[tuple[int, int]] = []
    rows: dict[int, float] = {}
    leaves = count()

    def place(pid: int, level: int) -> float:
        tree.append((pid, level))
        children = [place(child, level + 1) for child in names if parents.get(child) == pid]
        rows[pid] = (children[0] + children[-1]) / 2 if children else next(leaves)
        return rows[pid]

    for pid in names:
        if parents.get(pid) not in names:
            place(pid, 0)
    if len(tree) < len(names):
        raise ValueError("process_tree: a process is its own ancestor; look at `parents`.")
    return tree, rows


def _draw_branch(axes: Axes, parent_row: float, spot: tuple[float, float]) -> None:
    x, row = spot
    right, middle = x - _COLUMN + _BOX[0], x - (_COLUMN - _BOX[0]) / 2
    axes.plot([right, middle, middle, x], [parent_row, parent_row, row, row], color=FAINT, zorder=1)


def _draw_box(axes: Axes, name: str, below: str, spot: tuple[float, float]) -> None:
    from matplotlib.patches import Rectangle

    (x, row), (width, height) = spot, _BOX
    corner = (x, row - height / 2)
    axes.add_patch(Rectangle(corner, width, height, facecolor=SPAN.tint, edgecolor=INK, zorder=2))
    centre = x + width / 2
    label = name.replace("$", r"\$")
    axes.text(centre, row - 0.1, label, ha="center", va="center", color=INK, fontsize=10, zorder=3)
    axes.text(centre, row + 0.16, below, ha="center", va="center", color=INK, fontsize=7, zorder=3)
