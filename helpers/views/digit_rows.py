"""Draw which digits of a batch each rank has: a row of images for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any

from helpers.views.picture import Picture, new_figure
from helpers.views.plain import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 16
_CELL, _LABEL = 0.5, 0.75


def digit_rows(
    images: Any, labels: Any, rows: Sequence[Sequence[int]], *, title: str | None = None
) -> Picture:
    """Draw the images with the indices `rows[r]` in the row of rank r, each with its label.

    images: (samples, pixels), square, from 0 to 1; labels: (samples,). At most 16 in a row.
    """
    columns = min(MOST_COLUMNS, max((len(row) for row in rows), default=0))
    width = _LABEL + _CELL * max(columns, 4)
    figure = new_figure(width, 0.3 + 1.35 * _CELL * max(1, len(rows)))
    grid = figure.subplots(max(1, len(rows)), max(1, columns), squeeze=False)
    for rank, axes_of_rank in enumerate(grid):
        row = list(rows[rank])[:columns] if rank < len(rows) else []
        for column, axes in enumerate(axes_of_rank):
            axes.axis("off")
            if column < len(row):
                _draw(axes, images[row[column]], int(labels[row[column]]))
        if columns:
            axes_of_rank[0].text(
                -0.35,
                0.5,
                f"rank {rank}",
                transform=axes_of_rank[0].transAxes,
                ha="right",
                va="center",
            )
    if title:
        figure.suptitle(title, fontsize=11)
    return Picture(figure, _text(labels, rows))


def _draw(axes: Axes, image: Any, label: int) -> None:
    side = isqrt(len(image))
    axes.imshow(image.reshape(side, -1).tolist(), cmap="gray_r", vmin=0, vmax=1)
    axes.set_title(str(label), fontsize=9, pad=2)


def _text(labels: Any, rows: Sequence[Sequence[int]]) -> str:
    lines = []
    for rank, row in enumerate(rows):
        shown = " ".join(str(int(labels[index])) for index in list(row)[:MOST_COLUMNS])
        more = " ..." if len(row) > MOST_COLUMNS else ""
        lines.append(f"rank {rank} has {plural(len(row), 'sample')}: {shown}{more}".rstrip(": "))
    return "\n".join(lines)
