"""Draw each rank's memory as a stacked bar: weights, gradients, optimizer state, and so on.

Notebooks call `memory_bars` with the counted bytes, and with the bytes predicted by a formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from helpers.views.palette import INK
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line, short_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Parts = Mapping[str, int]
"""The bytes of each part of a rank's memory, in the order of drawing."""

LOOKS = (
    ("#56B4E9", ""),
    ("#F0E442", "////"),
    ("#009E73", "...."),
    ("#CC79A7", "xxxx"),
    ("#999999", "----"),
)
"""Color and hatch of the first, second, ... kind of part: weights, gradients, optimizer state, ..."""

_BAR, _GAP = 0.26, 0.2


def memory_bars(
    parts_of: Mapping[str, Sequence[Parts]],
    *,
    predicted: Mapping[str, Sequence[int]] | None = None,
    title: str | None = None,
) -> Picture:
    """Draw a group of bars for each name, a bar for each of its ranks, from top to bottom.

    parts_of[name][rank]: the bytes of each part. Parts with the same name look the same.
    predicted[name][rank]: the expected total bytes, drawn as a line across the bar. Raises ValueError
    if there are no parts, or more than five kinds.
    """
    kinds = list(
        dict.fromkeys(kind for ranks in parts_of.values() for own in ranks for kind in own)
    )
    if not kinds or len(kinds) > len(LOOKS):
        raise ValueError(f"memory_bars needs 1 to {len(LOOKS)} kinds of parts, not {len(kinds)}.")
    places = list(_bar_positions(parts_of))
    bottom = places[-1][2] + _BAR
    figure = new_figure(7.6, bottom + 1.25)
    axes = figure.add_subplot()
    for kind, (color, hatch) in zip(kinds, LOOKS, strict=False):
        starts = [_bytes_before(parts_of[name][rank], kind, kinds) for name, rank, _ in places]
        sizes = [parts_of[name][rank].get(kind, 0) for name, rank, _ in places]
        axes.barh(
            [y for *_, y in places], sizes, _BAR * 0.86, starts, color=color, hatch=hatch,
            edgecolor=INK, linewidth=0.6, label=one_line(kind).replace("$", r"\$"),
        )  # fmt: skip
    _label_totals(axes, places, parts_of, predicted or {})
    axes.set_yticks([y for *_, y in places], [_label(name, rank) for name, rank, _ in places])
    axes.set_ylim(bottom - _BAR / 2 + 0.06, -_BAR / 2 - 0.06)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.xaxis.set_major_formatter(lambda value, _: short_bytes(value))
    axes.set_xlabel("held by the rank")
    axes.spines[["top", "right"]].set_visible(False)
    handles = [*axes.containers, *axes.lines[:1]]  # a single line is enough for the legend
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    if title:
        axes.set_title(one_line(title, 90), loc="left", fontsize=10.5, parse_math=False)
    return Picture(figure, _describe_bars(parts_of, predicted or {}))


def _bar_positions(parts_of: Mapping[str, Sequence[Parts]]) -> Iterator[tuple[str, int, float]]:
    """Return each bar's group, rank and distance from the top, in inches."""
    y = 0.0
    for name, ranks in parts_of.items():
        for rank in range(len(ranks)):
            yield name, rank, y
            y += _BAR
        y += _GAP


def _bytes_before(parts: Parts, kind: str, kinds: Sequence[str]) -> int:
    return sum(parts.get(other, 0) for other in kinds[: kinds.index(kind)])


def _label_totals(
    axes: Axes,
    places: Sequence[tuple[str, int, float]],
    parts_of: Mapping[str, Sequence[Parts]],
    predicted: Mapping[str, Sequence[int]],
) -> None:
    """Write each bar's total to the right of it, and draw the predicted bytes."""
    most = max(sum(own.values()) for ranks in parts_of.values() for own in ranks)
    for name, rank, y in places:
        total = sum(parts_of[name][rank].values())
        expected = predicted[name][rank] if name in predicted else 0
        if name in predicted:
            axes.plot(
                [expected] * 2, [y - _BAR / 2, y + _BAR / 2], color="#D55E00", linewidth=2.6,
                label="predicted",
            )  # fmt: skip
        axes.annotate(
            short_bytes(total), (max(total, expected), y), (6, 0), textcoords="offset points",
            va="center", fontsize=8.5, color=INK,
        )  # fmt: skip
    axes.set_xlim(0, 1.14 * max(most, *(max(p, default=0) for p in predicted.values()), 1))


def _label(name: str, rank: int) -> str:
    shown = one_line(name, 40).replace("$", r"\$")
    return f"{shown}   rank {rank}" if rank == 0 else f"rank {rank}"


def _describe_bars(
    parts_of: Mapping[str, Sequence[Parts]], predicted: Mapping[str, Sequence[int]]
) -> str:
    lines = ["bytes held by each rank:"]
    for name, ranks in parts_of.items():
        for rank, own in enumerate(ranks):
            parts = ", ".join(f"{one_line(kind)} {nbytes:,}" for kind, nbytes in own.items())
            total = f"{sum(own.values()):,} in total"
            wanted = f"; predicted {predicted[name][rank]:,}" if name in predicted else ""
            lines.append(f"  {one_line(name)}, rank {rank}: {parts}; {total}{wanted}")
    return "\n".join(lines)
