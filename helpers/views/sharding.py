"""Draw full matrices, and color each element by the rank that holds it.

    {name: full tensor}, Run of {name: this rank's part} -> holders() -> sharding() -> Picture

Notebooks call `sharding` with a run in which each rank returned its parts. Elements are recognized by their
values, so each value of a full tensor must occur only once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from helpers.ranks.run import Run
from helpers.views.palette import COLLECTIVE, FAILURE, FAINT, INK, RECV, SEND, SPAN, WAIT, Look
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL_COLORS = (SEND, WAIT, RECV, COLLECTIVE, FAILURE, SPAN)
_MAX_ELEMENTS = 24
"""The largest number of rows or columns of a matrix that can still be distinguished."""
_CELL_INCHES = 0.3
"""The side of an element, in inches."""
_MIN_COLUMNS = 8
"""The minimum number of columns of a panel, so that its title fits."""
_ALL_RANKS, _NO_RANK = "all", "–"

Grid = list[list[tuple[int, ...]]]
"""grid[row][column]: the ranks that hold this element of a matrix."""


def sharding(tensors: Mapping[str, Any], run: Run, *, title: str | None = None) -> Picture:
    """Draw each matrix of `tensors`. The number in a cell is the rank whose run.values[rank] holds it.

    tensors[name]: a tensor of one or two dimensions. run.values[rank][name]: the rank's part, which may be
    missing. An element held by every rank is labeled "all", and an element held by no rank with a dash.
    Raises ValueError for other values, tensors or sizes.
    """
    grids = {name: holders(name, tensor, run) for name, tensor in tensors.items()}
    if not grids:
        raise ValueError("sharding needs at least one tensor: {'weight': layer.weight, ...}.")
    columns = [max(_MIN_COLUMNS, len(grid[0])) for grid in grids.values()]
    rows = max(len(grid) for grid in grids.values())
    figure = new_figure(
        sum(columns) * _CELL_INCHES + 0.3 * len(grids),
        rows * _CELL_INCHES + 0.55 + 0.3 * bool(title),
    )
    panels = figure.subplots(1, len(grids), squeeze=False, width_ratios=columns)[0]
    for axes, (name, grid), width in zip(panels, grids.items(), columns, strict=True):
        _draw_matrix(axes, name, grid, run.world_size)
        axes.set_xlim(-0.05, width + 0.05)
        # Use the same size in all panels, so that their cells are equal
        axes.set_ylim(rows + 0.05, -0.05)
    if title:
        figure.suptitle(one_line(title, 90), fontsize=10.5, x=0.02, ha="left", parse_math=False)
    lines = [
        f"  {one_line(name)}: {_describe_matrix(grid, run.world_size)}"
        for name, grid in grids.items()
    ]
    return Picture(figure, "\n".join(["who holds what:", *lines]))


def holders(name: str, tensor: Any, run: Run) -> Grid:
    """Return the holders of each element of a tensor. A vector is one row."""
    matrix = _matrix(name, tensor)
    if not matrix or not matrix[0] or len(matrix) > _MAX_ELEMENTS or len(matrix[0]) > _MAX_ELEMENTS:
        raise ValueError(
            f"{name!r} has a shape that cannot be drawn: sharding draws 1 to {_MAX_ELEMENTS} "
            "rows and columns."
        )
    flat = [value for row in matrix for value in row]
    if len(set(flat)) < len(flat):
        raise ValueError(
            f"in {name!r} a value occurs twice, so the picture cannot show which rank holds it. Give every "
            "element a different value, for example with torch.arange."
        )
    held = [_rank_values(name, run.values[rank]) for rank in range(run.world_size)]
    return [[tuple(r for r, own in enumerate(held) if v in own) for v in row] for row in matrix]


def _matrix(name: str, tensor: Any) -> list[list[float]]:
    dims = getattr(tensor, "ndim", 0)
    if dims not in (1, 2):
        raise ValueError(f"{name!r} has {dims} dimensions; sharding draws one or two.")
    rows: list[list[float]] = tensor.tolist() if dims == 2 else [tensor.tolist()]
    return rows


def _rank_values(name: str, parts: Any) -> set[float]:
    if parts is None:
        return set()
    if not isinstance(parts, Mapping):
        raise ValueError("each rank must return a dict of its parts: {'weight': tensor, ...}.")
    own = parts.get(name)
    return set() if own is None else set(own.flatten().tolist())


def _draw_matrix(axes: Axes, name: str, grid: Grid, world_size: int) -> None:
    from matplotlib.patches import Rectangle

    for i, row in enumerate(grid):
        for j, ranks in enumerate(row):
            look = _cell_look(ranks, world_size)
            axes.add_patch(
                Rectangle(
                    (j, i), 1, 1, facecolor=look.tint if look else "white",
                    edgecolor=look.color if look else FAINT, linewidth=0.8,
                )
            )  # fmt: skip
            text = _cell_label(ranks, world_size)
            size = 8.5 if len(text) < 3 else 6.5
            axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=size, color=INK)
    rows, columns = len(grid), len(grid[0])
    shape = f"{rows} rows, {columns} columns" if rows > 1 else f"{columns} elements"
    axes.set_aspect("equal", anchor="NW")
    axes.set_title(f"{one_line(name, 20)}\n{shape}", fontsize=9, loc="left", parse_math=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_frame_on(False)


def _cell_look(ranks: tuple[int, ...], world_size: int) -> Look | None:
    if not ranks or len(ranks) == world_size > 1:
        return None
    return _CELL_COLORS[ranks[0] % len(_CELL_COLORS)]


def _cell_label(ranks: tuple[int, ...], world_size: int) -> str:
    if len(ranks) == world_size > 1:
        return _ALL_RANKS
    return ",".join(map(str, ranks)) if ranks else _NO_RANK


def _describe_matrix(grid: Grid, world_size: int) -> str:
    """Describe each rank's part: whole rows, whole columns, or a number of elements."""
    rows, columns = len(grid), len(grid[0])
    flat = [ranks for row in grid for ranks in row]
    if all(len(ranks) == world_size for ranks in flat):
        return f"all {len(flat)} elements on every rank"
    parts = []
    for rank in range(world_size):
        own = [i for i in range(rows) if all(rank in cell for cell in grid[i])]
        across = [j for j in range(columns) if all(rank in row[j] for row in grid)]
        count = sum(rank in ranks for ranks in flat)
        if not count:
            parts.append(f"rank {rank} no elements")
        elif own and rows > 1 and len(own) * columns == count:
            parts.append(f"rank {rank} row{'s' * (len(own) > 1)} {_format_ranges(own)}")
        elif across and len(across) * rows == count:
            what = ("column" if rows > 1 else "element") + "s" * (len(across) > 1)
            parts.append(f"rank {rank} {what} {_format_ranges(across)}")
        else:
            parts.append(f"rank {rank} {count} of {len(flat)} elements")
    return "; ".join(parts)


def _format_ranges(numbers: list[int]) -> str:
    """Write 0, 1, 2, 5 as `0-2, 5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
