"""Draw who sent how much to whom, and what each rank handed in to collectives.

    Trace -> traffic_matrix(), handed_in() -> traffic() -> Picture

What gloo or NCCL sends inside a collective is not in a trace: only the bytes that each rank handed
in are, and they stand in a panel of their own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Event, Message, Trace
from helpers.views.palette import FAINT, INK
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import ELLIPSIS, one_line, plural, short_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.image import AxesImage

_NUMBERS_UP_TO = 8
_MOST_PAIRS = 32
_MOST_OPS = 9
_MOST_BYTES = 2**60
_COLORS = "cividis_r"
_NOTHING = "no communication"
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def traffic(run_or_trace: Run | Trace) -> Picture:
    """Draw the bytes of each pair of ranks, and beside them those handed in to collectives.

    A message that never arrived moved nothing and is not counted.
    Raises TypeError for anything but a Run or a Trace.
    """
    trace = trace_of(run_or_trace)
    counts, ops = _count_messages(trace), handed_in(trace)
    drawn = dict(list(ops.items())[:_MOST_OPS])
    widths = ([6.0] if _any(counts) else []) + ([1.6 + 0.95 * len(drawn)] if ops else [])
    figure = new_figure(max(4.0, sum(widths)), _height(trace.world_size) if widths else 1.0)
    panels = figure.subplots(1, max(1, len(widths)), squeeze=False, width_ratios=widths or [1])[0]
    if _any(counts):
        _draw_pairs(panels[0], traffic_matrix(trace), counts)
    if ops:
        _draw_handed_in(panels[-1], drawn, trace.world_size)
    if not widths:
        panels[0].axis("off")
        panels[0].text(0.5, 0.5, _NOTHING, ha="center", va="center", color=FAINT)
    return Picture(figure, _text(trace, counts, ops))


def traffic_matrix(trace: Trace) -> list[list[int]]:
    """Give the bytes of the messages that arrived: row is the source, column the destination."""
    matrix = _zeros(trace.world_size)
    for message in _arrived(trace):
        matrix[message.src][message.dst] += _bytes(message.send)
    return matrix


def handed_in(trace: Trace) -> dict[str, list[int]]:
    """Give, for each collective that occurs, the bytes that each rank handed in to it."""
    ops: dict[str, list[int]] = defaultdict(lambda: [0] * trace.world_size)
    for event in trace:
        if event.is_collective and 0 <= event.rank < trace.world_size:
            ops[event.op][event.rank] += _bytes(event)
    return dict(sorted(ops.items()))


def _count_messages(trace: Trace) -> list[list[int]]:
    counts = _zeros(trace.world_size)
    for message in _arrived(trace):
        counts[message.src][message.dst] += 1
    return counts


def _arrived(trace: Trace) -> list[Message]:
    """Keep the messages between ranks of the world of which either end saw the transfer end."""
    ranks = range(trace.world_size)
    return [
        message
        for message in trace.messages()
        if message.src in ranks
        and message.dst in ranks
        and (message.send.finished or (message.recv is not None and message.recv.finished))
    ]


def _bytes(event: Event) -> int:
    return max(0, min(_MOST_BYTES, event.nbytes))


def _zeros(size: int) -> list[list[int]]:
    return [[0] * size for _ in range(size)]


def _any(matrix: list[list[int]]) -> bool:
    return any(map(any, matrix))


def _height(world_size: int) -> float:
    return max(2.4, min(8.0, 1.4 + (0.5 if world_size <= _NUMBERS_UP_TO else 0.28) * world_size))


def _draw_pairs(axes: Axes, matrix: list[list[int]], counts: list[list[int]]) -> None:
    image = _heat(axes, matrix, [[count > 0 for count in row] for row in counts])
    _rank_ticks(axes.xaxis, len(matrix))
    _rank_ticks(axes.yaxis, len(matrix))
    axes.set_xlabel("to rank", fontsize=9)
    axes.set_ylabel("from rank", fontsize=9)
    axes.set_title("messages: bytes (how many)", fontsize=9.5, loc="left")
    _color_bar(axes, image, "bytes sent")
    if len(matrix) <= _NUMBERS_UP_TO:
        for src, row in enumerate(counts):
            for dst, count in enumerate(row):
                if count:
                    text = f"{short_bytes(matrix[src][dst])}\n({count:,})"
                    _number(axes, image, dst, src, matrix[src][dst], text)


def _draw_handed_in(axes: Axes, ops: dict[str, list[int]], world_size: int) -> None:
    rows = [[ops[op][rank] for op in ops] for rank in range(world_size)]
    image = _heat(axes, rows, [[True] * len(ops) for _ in rows])
    names = [one_line(op, 16).replace("_", "_\n", 1) for op in ops]
    axes.set_xticks(range(len(ops)), names, fontsize=8, parse_math=False)
    _rank_ticks(axes.yaxis, world_size)
    axes.set_ylabel("rank", fontsize=9)
    axes.set_title("collectives: bytes handed in", fontsize=9.5, loc="left")
    if world_size > 2 * _NUMBERS_UP_TO:
        _color_bar(axes, image, "bytes handed in")
        return
    for rank, row in enumerate(rows):
        for column, nbytes in enumerate(row):
            _number(axes, image, column, rank, nbytes, short_bytes(nbytes))


def _heat(axes: Axes, rows: list[list[int]], there: list[list[bool]]) -> AxesImage:
    """Fill the cells, nothing where nothing was sent: 0 bytes and no message are not the same."""
    import numpy as np

    values = np.ma.masked_array(np.array(rows, dtype=float), mask=~np.array(there))
    most = max(1.0, float(values.max()))
    image = axes.imshow(values, cmap=_COLORS, vmin=0, vmax=most, aspect="auto")
    axes.set_xticks(np.arange(len(rows[0]) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#DDDDDD", linewidth=0.6)
    axes.tick_params(which="both", length=0, labelsize=8.5)
    return image


def _rank_ticks(axis: Axis, world_size: int) -> None:
    axis.set_ticks(range(0, world_size, max(1, -(-world_size // 32))))
    axis.set_major_formatter("{x:.0f}")


def _color_bar(axes: Axes, image: AxesImage, what: str) -> None:
    most = image.norm.vmax or 1.0
    power, unit = next((p, u) for p, u in _UNITS if most >= p or p == 1)
    bar = axes.figure.colorbar(image, ax=axes, format=lambda x, _: f"{x / power:g}", pad=0.02)
    bar.set_label(f"{what} [{unit}]", fontsize=9)
    bar.ax.tick_params(labelsize=8)


def _number(axes: Axes, image: AxesImage, column: int, row: int, nbytes: float, text: str) -> None:
    red, green, blue, _ = image.cmap(image.norm(nbytes))
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.45
    color = "white" if dark else INK
    axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=color)


def _text(trace: Trace, counts: list[list[int]], ops: dict[str, list[int]]) -> str:
    total = sum(map(sum, counts))
    parts = ([plural(total, "message")] if total else []) + list(ops)
    lines = [f"traffic of {plural(trace.world_size, 'rank')}: {', '.join(parts) or _NOTHING}"]
    matrix = traffic_matrix(trace)
    pairs = [
        f"rank {src} → rank {dst}: {matrix[src][dst]:,} B in {plural(count, 'message')}"
        for src, row in enumerate(counts)
        for dst, count in enumerate(row)
        if count
    ]
    lines += pairs[:_MOST_PAIRS]
    if len(pairs) > _MOST_PAIRS:
        lines.append(f"{ELLIPSIS} and {len(pairs) - _MOST_PAIRS:,} more pairs of ranks")
    lines += [f"{one_line(op, 28)}: {_handed_in_text(nbytes)}" for op, nbytes in ops.items()]
    return "\n".join(lines)


def _handed_in_text(nbytes: list[int]) -> str:
    if len(set(nbytes)) == 1:
        return f"each rank handed in {nbytes[0]:,} B"
    shown = ", ".join(f"rank {r} {n:,} B" for r, n in enumerate(nbytes[:_MOST_PAIRS]))
    rest = len(nbytes) - _MOST_PAIRS
    return f"handed in by {shown}" + (f", {ELLIPSIS} and {rest} more ranks" if rest > 0 else "")
