"""Draw each rank's samples in each epoch, in order.

Notebooks call `sample_raster` with the ranks' results: shards[epoch][rank] -> Picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from helpers.views.palette import FAILURE, FAINT, INK
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Step = int | Sequence[int]
Shards = Sequence[Sequence[Sequence[Step]]]

_NUMBERS_UP_TO = 24
_MAX_STEPS, _MAX_EPOCHS, _MAX_LISTED = 200, 6, 24
_COLORS = "cividis"
_CELL_INCHES = 0.36


def sample_raster(
    shards: Shards,
    *,
    title: str | None = None,
    cell: str = "index of the sample",
    columns: Sequence[str] = (),
) -> Picture:
    """Draw a panel for each epoch: ranks from top to bottom, steps from left to right.

    shards[epoch][rank]: the indices of a rank's samples, in the rank's order. For each step there is one
    index, or a list of indices, which may be empty. The number and the shade of a cell indicate the sample. A
    sample that occurs more than once in an epoch is framed and hatched. columns: names of the steps. Raises
    ValueError if there is no epoch or no rank.
    """
    if not shards or not all(len(epoch) for epoch in shards):
        raise ValueError("a raster needs shards[epoch][rank], with one epoch and one rank at least")
    drawn = [
        [list(map(_step_samples, own))[:_MAX_STEPS] for own in e] for e in shards[:_MAX_EPOCHS]
    ]
    steps = max((len(own) for epoch in drawn for own in epoch), default=0)
    most = max((len(step) for epoch in drawn for own in epoch for step in own), default=1)
    ranks = max(len(epoch) for epoch in drawn)
    width = max(4.5, min(10.0, steps * max(1, most) * _CELL_INCHES + 1.6))
    figure = new_figure(width, (ranks * _CELL_INCHES + 0.45) * len(drawn) + (0.9 if title else 0.6))
    panels = figure.subplots(len(drawn), 1, squeeze=False, sharex=True)[:, 0]
    last = max((i for epoch in drawn for own in epoch for step in own for i in step), default=0)
    for number, (axes, epoch) in enumerate(zip(panels, drawn, strict=True)):
        _draw_epoch(axes, epoch, max(1, last), max(1, steps))
        axes.set_title(f"epoch {number}", fontsize=9, loc="left")
    if columns:
        shown = columns[:steps]
        panels[-1].set_xticks(range(len(shown)), [str(name) for name in shown], fontsize=8.5)
    panels[-1].set_xlabel(
        f"{'' if columns else 'step of the rank '}(in a cell: {one_line(cell, 40)})",
        fontsize=9,
        parse_math=False,
    )
    if title:
        figure.suptitle(one_line(title, 90), fontsize=10.5, x=0.02, ha="left", parse_math=False)
    return Picture(figure, _describe_shards(shards))


def repeated_samples(epoch: Sequence[Sequence[Step]]) -> list[int]:
    """Return the samples that occur more than once in an epoch, in ascending order."""
    counts = Counter(index for own in epoch for step in own for index in _step_samples(step))
    return sorted(index for index, count in counts.items() if count > 1)


def _step_samples(step: Step) -> tuple[int, ...]:
    return tuple(map(int, step)) if isinstance(step, (list, tuple)) else (int(step),)  # type: ignore[arg-type]


def _draw_epoch(axes: Axes, epoch: Sequence[Sequence[Step]], last: int, steps: int) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    twice = set(repeated_samples(epoch))
    for rank, own in enumerate(epoch):
        parts = [
            (step, k, index, 0.92 / len(_step_samples(indices)))
            for step, indices in enumerate(own)
            for k, index in enumerate(_step_samples(indices))
        ]
        for step, k, index, wide in parts:
            left = step - 0.46 + k * wide
            shade = colormaps[_COLORS](index / last)
            again = index in twice
            cell = Rectangle(
                (left, rank - 0.42),
                wide,
                0.84,
                facecolor=shade,
                edgecolor=FAILURE.color if again else FAINT,
                linewidth=2.2 if again else 0.4,
                hatch=FAILURE.hatch if again and steps > _NUMBERS_UP_TO else "",
            )
            axes.add_patch(cell)
            if steps <= _NUMBERS_UP_TO:
                color = "white" if sum(shade[:3]) < 1.5 else INK
                text = f"{index}*" if again else str(index)
                axes.text(
                    left + wide / 2, rank, text, ha="center", va="center", fontsize=8, color=color
                )
    axes.set_xlim(-0.6, steps - 0.4)
    axes.set_ylim(len(epoch) - 0.5, -0.5)
    axes.set_yticks(range(len(epoch)), [f"rank {rank}" for rank in range(len(epoch))], fontsize=8.5)
    axes.set_xticks(range(0, steps, max(1, -(-steps // _NUMBERS_UP_TO))))
    axes.tick_params(length=0, labelsize=8.5)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)


def _list_samples(step: Step) -> str:
    samples = " ".join(map(str, _step_samples(step)))
    return f"({samples})" if isinstance(step, (list, tuple)) else samples


def _describe_shards(shards: Shards) -> str:
    lines = []
    for number, epoch in enumerate(shards):
        lines.append(f"epoch {number}:")
        for rank, own in enumerate(epoch):
            listed = " ".join(map(_list_samples, own[:_MAX_LISTED]))
            rest = len(own) - _MAX_LISTED
            more = f" and {rest} more" if rest > 0 else ""
            lines.append(
                f"  rank {rank}: {listed}{more}" if len(own) else f"  rank {rank}: nothing"
            )
        if twice := repeated_samples(epoch):
            shown = ", ".join(map(str, twice[:_MAX_LISTED]))
            lines.append(f"  more than once: {shown}")
    return "\n".join(lines)
