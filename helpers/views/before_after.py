"""Draw each rank's data before and after a collective, number by number.

    Run of (before, after) pairs -> blocks_of() -> find each number's origin -> before_after() -> Picture

Notebooks call `before_after` with a run in which each rank returned two values: a copy of its data before the
collective, and its data after it. Each cell has the color and hatch of the rank from which its number came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helpers.ranks.run import Run
from helpers.views.palette import COLLECTIVE, FAILURE, FAINT, INK, RECV, SEND, SPAN, WAIT
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import ELLIPSIS, one_line, plural
from helpers.views.values import short_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL_COLORS = (SEND, WAIT, RECV, COLLECTIVE, FAILURE, SPAN)
_MAX_RANKS = 12
_MAX_BLOCKS = 12
_MAX_ROWS = 8
_MAX_COLUMNS = 12
_GAP = 0.35
_CELL_WIDTH, _CELL_HEIGHT = 0.46, 0.42
_EMPTY_TEXT = "nothing"


@dataclass(frozen=True)
class Block:
    """One tensor as rows of short texts. `hidden`: whether some of its numbers are not shown."""

    rows: tuple[tuple[str, ...], ...]
    flat: bool
    hidden: bool = False

    def cells(self) -> Iterator[tuple[int, int, str]]:
        for i, row in enumerate(self.rows):
            for j, text in enumerate(row):
                yield i, j, text

    @property
    def width(self) -> int:
        return max(1, *map(len, self.rows)) if self.rows else 1

    def __str__(self) -> str:
        more = f" {ELLIPSIS}" * self.hidden
        rows = [" ".join(row) for row in self.rows]
        inside = " ".join(rows if self.flat else [f"[{row}]" for row in rows])
        return f"[{inside}{more}]"


Blocks = tuple[Block, ...]
"""The data of one rank at one time, which may be empty."""


def before_after(run: Run, *, title: str | None = None) -> Picture:
    """Draw a run in which each rank returned (before, after).

    before, after: a tensor, a number, a list of these (drawn side by side), or None for "nothing". Let each
    rank return a copy (`x.clone()`) as `before`, because most collectives write into their tensor. A number
    that occurs in the `before` of exactly one rank is drawn in that rank's color. If it occurs in the
    `before` of several ranks, including the rank that has it now, it is drawn in the color of this rank. All
    other numbers count as new. Raises ValueError if a rank returned anything but a pair.
    """
    pairs = [_returned_pair(run, rank) for rank in range(min(run.world_size, _MAX_RANKS))]
    homes = _ranks_by_number([before for before, _ in pairs])
    heights = [max(1, *(_height(side) for side in pair)) for pair in pairs]
    widths = [max(3.0, *(_width(pair[i]) for pair in pairs)) for i in (0, 1)]
    figure = new_figure(
        max(4.6, sum(widths) * _CELL_WIDTH + 1.5),
        (sum(heights) + _GAP * len(pairs)) * _CELL_HEIGHT + 0.5 + 0.3 * (title is not None),
    )
    panels = figure.subplots(1, 2, squeeze=False, width_ratios=widths)[0]
    for axes, name, i in zip(panels, ("before", "after"), (0, 1), strict=True):
        _draw_side(axes, [pair[i] for pair in pairs], heights, widths[i], homes)
        axes.set_title(name, fontsize=9.5, loc="left")
    panels[0].set_ylabel("rank", fontsize=9)
    if title:
        figure.suptitle(one_line(title, 90), fontsize=10.5, x=0.02, ha="left", parse_math=False)
    return Picture(figure, _describe_run(run, pairs))


def blocks_of(value: Any) -> Blocks:
    """Return a rank's value as blocks: one for a tensor or number, several for a list."""
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return tuple(_make_block(part) for part in value[:_MAX_BLOCKS])
    return (_make_block(value),)


def _returned_pair(run: Run, rank: int) -> tuple[Blocks, Blocks]:
    value = run.values[rank]
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(
            f"rank {rank} returned {short_value(value, 60)}; before_after draws pairs. Let every "
            "rank return (before, after), for example (x.clone() made before the call, x)."
        )
    return blocks_of(value[0]), blocks_of(value[1])


def _make_block(value: Any) -> Block:
    """Write a tensor of any shape as a small matrix, whose rows are all dimensions except the last."""
    shape = tuple(getattr(value, "shape", ()))
    if not hasattr(value, "reshape") or not shape:
        item = value.item() if hasattr(value, "item") else value
        return Block(((_format_number(item),),), flat=True)
    if 0 in shape:
        return Block((), flat=True)
    flat = len(shape) == 1
    matrix = value.reshape(-1, shape[-1])
    shown = matrix[:_MAX_ROWS, :_MAX_COLUMNS].tolist()
    hidden = matrix.shape[0] > _MAX_ROWS or matrix.shape[1] > _MAX_COLUMNS
    return Block(tuple(tuple(map(_format_number, row)) for row in shown), flat, hidden)


def _format_number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "·" if value is None else short_value(value, 8)
    return f"{value:.4g}" if isinstance(value, float) else one_line(str(value), 7)


def _ranks_by_number(before: Sequence[Blocks]) -> dict[str, set[int]]:
    """Return, for each number, the ranks that had it before the collective."""
    homes: dict[str, set[int]] = {}
    for rank, side in enumerate(before):
        for block in side:
            for _, _, text in block.cells():
                homes.setdefault(text, set()).add(rank)
    return homes


def _origin_rank(text: str, rank: int, homes: dict[str, set[int]]) -> int | None:
    """Return the rank from which a number came, or None if it is unknown or ambiguous."""
    had = homes.get(text, set())
    return rank if rank in had else next(iter(had)) if len(had) == 1 else None


def _height(side: Blocks) -> int:
    return max((len(block.rows) for block in side), default=1)


def _width(side: Blocks) -> float:
    return sum(block.width + _GAP + 0.5 * block.hidden for block in side)


def _draw_side(
    axes: Axes,
    sides: Sequence[Blocks],
    heights: Sequence[int],
    width: float,
    homes: dict[str, set[int]],
) -> None:
    top, middles = 0.0, []
    for rank, (side, height) in enumerate(zip(sides, heights, strict=True)):
        middles.append(top + height / 2)
        left = 0.0
        for block in side:
            start = top + (height - len(block.rows)) / 2
            _draw_block(axes, block, left, start, rank, homes)
            left += block.width + _GAP + 0.5 * block.hidden
        if not side:
            axes.text(0.1, middles[-1], _EMPTY_TEXT, va="center", fontsize=8.5, color=FAINT)
        top += height + _GAP
    axes.set_xlim(-0.1, width)
    axes.set_ylim(top - _GAP / 2, -_GAP / 2)
    axes.set_yticks(middles, [str(rank) for rank in range(len(sides))])
    axes.set_xticks([])
    axes.tick_params(length=0, labelsize=9)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_block(
    axes: Axes, block: Block, left: float, top: float, rank: int, homes: dict[str, set[int]]
) -> None:
    from matplotlib.patches import Rectangle

    for i, j, text in block.cells():
        home = _origin_rank(text, rank, homes)
        look = None if home is None else _CELL_COLORS[home % len(_CELL_COLORS)]
        x, y = left + j, top + i
        frame = Rectangle(
            (x, y), 1, 1, facecolor=look.tint if look else "white",
            edgecolor=look.color if look else INK, linewidth=0.9,
        )  # fmt: skip
        axes.add_patch(frame)
        if look:  # hatch only the edge, because digits on a hatched area are hard to read
            edge = Rectangle(
                (x, y), 0.16, 1, facecolor="white", edgecolor=look.color, hatch=look.hatch,
                linewidth=0.6,
            )  # fmt: skip
            axes.add_patch(edge)
        axes.text(
            x + (0.58 if look else 0.5), y + 0.5, text, ha="center", va="center",
            fontsize=9 if len(text) <= 4 else 7, color=INK, weight="normal" if look else "bold",
            parse_math=False,
        )  # fmt: skip
    if block.hidden:
        middle = top + len(block.rows) / 2
        axes.text(left + block.width + 0.2, middle, ELLIPSIS, va="center", fontsize=9, color=INK)
    if not block.rows:
        axes.text(left + 0.1, top, "empty", va="center", fontsize=8.5, color=FAINT)


def _describe_run(run: Run, pairs: Sequence[tuple[Blocks, Blocks]]) -> str:
    lines = ["before → after"]
    for rank, (before, after) in enumerate(pairs):
        lines.append(f"rank {rank}: {_describe_side(before)} → {_describe_side(after)}")
    if run.world_size > len(pairs):
        lines.append(f"{ELLIPSIS} and {plural(run.world_size - len(pairs), 'more rank')}")
    return "\n".join(lines)


def _describe_side(side: Blocks) -> str:
    return ", ".join(map(str, side)) or _EMPTY_TEXT
