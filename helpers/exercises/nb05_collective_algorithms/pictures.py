"""Draw the traffic of several runs as small heat maps with one color scale, for comparison.

{label: Run} -> traffic.traffic_matrix -> traffic_grid() -> Picture
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.palette import FAINT, amount_colormap
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import one_line, plural, short_bytes
from helpers.views.traffic import traffic_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_EMPTY_TEXT = "no runs, so nothing is drawn"
_GRID_COLOR = "#CCCCCC"
_MAP_WIDTH, _MAX_ROW_WIDTH = 1.5, 8.8
"""The width of one map, and the largest width of a row of maps, in inches."""
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
_Matrix = list[list[int]]


def traffic_grid(runs: Mapping[str, Run | Trace], *, columns: int = 4) -> Picture:
    """Draw, for each run, the bytes sent from each rank to each rank; all maps share one color scale.

    columns: the number of maps in a row. Only messages are shown, counted as in `traffic`. Raises TypeError
    for anything but runs or traces.
    """
    matrices = {label: traffic_matrix(trace_of(run)) for label, run in runs.items()}
    if not matrices:
        return _empty_picture()
    columns = min(max(1, columns), len(matrices))
    rows = -(-len(matrices) // columns)
    side = min(_MAP_WIDTH, _MAX_ROW_WIDTH / columns)
    figure = new_figure(side * columns + 1.0, (side + 0.4) * rows + 0.4)
    panels = figure.subplots(rows, columns, squeeze=False)
    flat = [axes for row in panels for axes in row]
    most = max(1, *(sum(row) for matrix in matrices.values() for row in matrix))
    image = None
    for index, (axes, (label, matrix)) in enumerate(zip(flat, matrices.items(), strict=False)):
        image = _draw_matrix(axes, label, matrix, most)
        if index % columns == 0:
            axes.set_ylabel("from rank", fontsize=8.5)
        if index + columns >= len(matrices):
            axes.set_xlabel("to rank", fontsize=8.5)
    for axes in flat[len(matrices) :]:
        axes.axis("off")
    power, unit = next((p, u) for p, u in _UNITS if most >= p or p == 1)
    assert image is not None
    bar = figure.colorbar(image, ax=flat, format=lambda x, _: f"{x / power:g}", pad=0.02)
    bar.set_label(f"bytes sent [{unit}]", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return Picture(
        figure, "\n".join(_describe_matrix(label, matrix) for label, matrix in matrices.items())
    )


def _empty_picture() -> Picture:
    figure = new_figure(4.0, 0.8)
    axes = figure.add_subplot()
    axes.axis("off")
    axes.text(0.5, 0.5, _EMPTY_TEXT, ha="center", va="center", color=FAINT)
    return Picture(figure, _EMPTY_TEXT)


def _draw_matrix(axes: Axes, label: str, matrix: _Matrix, max_bytes: int) -> AxesImage:
    import numpy as np

    size = len(matrix)
    values = np.array([[*row, 0, sum(row)] for row in matrix], dtype=float)
    image = axes.imshow(
        np.ma.masked_array(values, mask=values == 0),
        cmap=amount_colormap(),
        vmin=0,
        vmax=max_bytes,
        aspect="auto",
    )
    ranks = range(0, size, -(-size // 8))
    axes.set_xticks([*ranks, size + 1], [*map(str, ranks), "all"])
    axes.set_yticks(ranks)
    for left, right in ((-0.5, size - 0.5), (size + 0.5, size + 1.5)):
        edges = np.arange(left, right + 1)
        axes.vlines(edges, -0.5, size - 0.5, color=_GRID_COLOR, linewidth=0.6)
        axes.hlines(np.arange(size + 1) - 0.5, left, right, color=_GRID_COLOR, linewidth=0.6)
    axes.set_frame_on(False)
    axes.tick_params(length=0, labelsize=7.5)
    axes.set_title(one_line(label, 28), fontsize=9, parse_math=False)
    return image


def _describe_matrix(label: str, matrix: _Matrix) -> str:
    links = sum(nbytes > 0 for row in matrix for nbytes in row)
    if not links:
        return f"{one_line(label)}: no bytes"
    total = short_bytes(sum(map(sum, matrix)))
    link = short_bytes(max(map(max, matrix)))
    through = [sum(row) for row in matrix]
    rank = through.index(max(through))
    return (
        f"{one_line(label)}: {plural(links, 'link')} used, {total} in all, {link} at most on one "
        f"link; rank {rank} sends most, {short_bytes(through[rank])}"
    )
