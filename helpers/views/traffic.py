"""Draw the bytes that each rank sent to each other rank, and passed to collectives.

    Trace -> traffic_matrix(), bytes_by_collective() -> traffic() -> Picture

For a collective, a trace does not contain the traffic of gloo or NCCL, but only the bytes passed to the call
by each rank. These bytes are shown in a separate panel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Event, Message, Trace
from helpers.views.by_host import first_ranks, host_lines
from helpers.views.palette import COLLECTIVE, FAINT, INK, amount_colormap
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import ELLIPSIS, one_line, plural, short_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.image import AxesImage

_MAX_NUMBERED_RANKS = 8
_BAR_WIDTH = 0.34
_MAX_PAIRS = 32
_MAX_OPS = 9
_MAX_BYTES = 2**60
_EMPTY_TEXT = "no communication"
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def traffic(run_or_trace: Run | Trace) -> Picture:
    """Draw the bytes exchanged by each pair of ranks and, next to them, the bytes passed to collectives.

    Messages that never arrived are not counted. Raises TypeError for anything but a Run or a Trace, and
    ValueError for imagined ranks.
    """
    trace = trace_of(run_or_trace)
    if trace.imagined:
        raise ValueError(
            "traffic draws all ranks of a world, but these ranks are imagined. Use traffic_ledger for "
            "one of them."
        )
    counts, ops = _count_messages(trace), bytes_by_collective(trace)
    drawn = dict(list(ops.items())[:_MAX_OPS])
    cell = _cell_size(trace.world_size) if _has_any(counts) else _BAR_WIDTH
    cells = cell * trace.world_size
    widths = ([cells + 2.0] if _has_any(counts) else []) + ([_ops_width(drawn)] if ops else [])
    figure = new_figure(max(4.0, sum(widths)), min(8.0, max(1.9, cells + 1.2)) if widths else 0.8)
    panels = figure.subplots(1, max(1, len(widths)), squeeze=False, width_ratios=widths or [1])[0]
    if _has_any(counts):
        _draw_pairs(panels[0], traffic_matrix(trace), counts, trace.hosts)
    if ops:
        _draw_collectives(panels[-1], drawn, trace.world_size, trace.hosts)
    if not widths:
        panels[0].axis("off")
        panels[0].text(0.5, 0.5, _EMPTY_TEXT, ha="center", va="center", color=FAINT)
    return Picture(figure, _describe_traffic(trace, counts, ops))


def traffic_matrix(trace: Trace) -> list[list[int]]:
    """Return the bytes of arrived messages: a row for each source, a column for each destination."""
    matrix = _zeros(trace.world_size)
    for message in _arrived_messages(trace):
        matrix[message.src][message.dst] += _format_bytes(message.send)
    return matrix


def bytes_by_collective(trace: Trace) -> dict[str, list[int]]:
    """Return, for each occurring collective, the bytes that each rank passed to it."""
    ops: dict[str, list[int]] = defaultdict(lambda: [0] * trace.world_size)
    for event in trace:
        if event.is_collective and event.rank in range(trace.world_size):
            ops[event.op][event.rank] += _format_bytes(event)
    return dict(sorted(ops.items()))


def _count_messages(trace: Trace) -> list[list[int]]:
    counts = _zeros(trace.world_size)
    for message in _arrived_messages(trace):
        counts[message.src][message.dst] += 1
    return counts


def _arrived_messages(trace: Trace) -> list[Message]:
    """Return the messages between ranks of the world that had finished at either end."""
    ranks = range(trace.world_size)
    return [
        message
        for message in trace.messages()
        if message.src in ranks
        and message.dst in ranks
        and (message.send.finished or (message.recv is not None and message.recv.finished))
    ]


def _format_bytes(event: Event) -> int:
    return max(0, min(_MAX_BYTES, event.nbytes))


def _zeros(size: int) -> list[list[int]]:
    return [[0] * size for _ in range(size)]


def _has_any(matrix: list[list[int]]) -> bool:
    return any(map(any, matrix))


def _cell_size(world_size: int) -> float:
    """Return the side of a cell in inches, with room for its number if there is one."""
    side = 0.8 if world_size <= 4 else 0.64 if world_size <= _MAX_NUMBERED_RANKS else 0.32
    return min(side, 6.0 / max(1, world_size))


def _ops_width(ops: dict[str, list[int]]) -> float:
    return max(2.7, 0.7 + 1.15 * len(ops))


def _draw_pairs(
    axes: Axes,
    matrix: list[list[int]],
    counts: list[list[int]],
    hosts: Sequence[str],
) -> None:
    image = _draw_heat_map(axes, matrix, counts)
    _rank_ticks(axes.xaxis, len(matrix), hosts, "{rank}\n{host}")
    _rank_ticks(axes.yaxis, len(matrix), hosts)
    for first in list(first_ranks(hosts))[
        1:
    ]:  # cells outside the diagonal squares are between hosts
        axes.axvline(first - 0.5, color=INK, linewidth=1.4)
        axes.axhline(first - 0.5, color=INK, linewidth=1.4)
    axes.set_xlabel("to rank", fontsize=9)
    axes.set_ylabel("from rank", fontsize=9)
    how_many = " (how many)" if len(matrix) <= _MAX_NUMBERED_RANKS else ""
    axes.set_title(f"messages: bytes{how_many}", fontsize=9.5, loc="left")
    amounts_sent = {nbytes for row in matrix for nbytes in row if nbytes}
    if len(matrix) > _MAX_NUMBERED_RANKS or len(amounts_sent) > 1:
        _color_bar(axes, image, matrix)
    if len(matrix) <= _MAX_NUMBERED_RANKS:
        for src, row in enumerate(counts):
            for dst, count in enumerate(row):
                if count:
                    text = f"{short_bytes(matrix[src][dst])}\n({count:,})"
                    _draw_number(axes, image, (dst, src), text)


def _draw_collectives(
    axes: Axes, ops: dict[str, list[int]], world_size: int, hosts: Sequence[str]
) -> None:
    """Draw a column for each collective, with a bar for each rank that shows its bytes."""
    for column, nbytes in enumerate(ops.values()):
        most = max(1, *nbytes)
        axes.barh(
            range(world_size),
            [0.92 * n / most for n in nbytes],
            height=0.8,
            left=column + 0.04,
            facecolor=COLLECTIVE.tint,
            edgecolor=COLLECTIVE.color,
            linewidth=1.0,
        )
        if world_size <= 2 * _MAX_NUMBERED_RANKS:
            for rank, n in enumerate(nbytes):
                axes.text(column + 0.1, rank, short_bytes(n), va="center", fontsize=8, color=INK)
    names = [one_line(op, 16) for op in ops]
    axes.set_xticks([column + 0.5 for column in range(len(ops))], names, parse_math=False)
    axes.set_xlim(0, len(ops))
    axes.set_ylim(world_size - 0.5, -0.5)
    _rank_ticks(axes.yaxis, world_size, hosts)
    axes.tick_params(length=0, labelsize=8.5)
    axes.set_ylabel("rank", fontsize=9)
    axes.set_title("collectives: bytes passed", fontsize=9.5, loc="left")
    for column in range(1, len(ops)):
        axes.axvline(column, color=FAINT, linewidth=0.6)


def _draw_heat_map(axes: Axes, rows: list[list[int]], counts: list[list[int]]) -> AxesImage:
    """Color the cells. Leave cells without messages empty, because a message of 0 bytes is also a message."""
    import numpy as np

    values = np.ma.masked_array(np.array(rows, dtype=float), mask=np.array(counts) == 0)
    image = axes.imshow(
        values, cmap=amount_colormap(), vmin=0, vmax=max(1, _largest(rows)), aspect="auto"
    )
    axes.set_xticks(np.arange(len(rows)) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows)) + 0.5, minor=True)
    axes.grid(which="minor", color="#DDDDDD", linewidth=0.6)
    axes.tick_params(which="both", length=0, labelsize=8.5)
    return image


def _largest(rows: list[list[int]]) -> int:
    return max(map(max, rows))


def _rank_ticks(
    axis: Axis, world_size: int, hosts: Sequence[str], form: str = "{host}  {rank}"
) -> None:
    """Number the ranks. form: the form of the label at each host's first rank."""
    ranks, first = range(0, world_size, max(1, -(-world_size // 32))), first_ranks(hosts)
    names = [
        form.format(rank=rank, host=one_line(first[rank], 20)) if rank in first else str(rank)
        for rank in ranks
    ]
    axis.set_ticks(ranks, names)


def _color_bar(axes: Axes, image: AxesImage, matrix: list[list[int]]) -> None:
    power, unit = next((p, u) for p, u in _UNITS if _largest(matrix) >= p or p == 1)
    bar = axes.figure.colorbar(image, ax=axes, format=lambda x, _: f"{x / power:g}", pad=0.02)
    bar.set_label(f"bytes sent [{unit}]", fontsize=9)
    bar.ax.tick_params(labelsize=8)


def _draw_number(axes: Axes, image: AxesImage, cell: tuple[int, int], text: str) -> None:
    column, row = cell
    value = image.get_array()[row, column]  # type: ignore[index]
    red, green, blue, _ = image.cmap(image.norm(value))
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.45
    color = "white" if dark else INK
    axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)


def _describe_traffic(trace: Trace, counts: list[list[int]], ops: dict[str, list[int]]) -> str:
    total = sum(map(sum, counts))
    parts = ([plural(total, "message")] if total else []) + list(ops)
    world = plural(trace.world_size, "rank")
    lines = [f"traffic of {world}: {', '.join(parts) or _EMPTY_TEXT}", *host_lines(trace)]
    matrix = traffic_matrix(trace)
    if trace.hosts:
        lines[-1] += _bytes_between(trace, matrix)
    pairs = [
        f"rank {src} → rank {dst}: {matrix[src][dst]:,} B in {plural(count, 'message')}"
        for src, row in enumerate(counts)
        for dst, count in enumerate(row)
        if count
    ]
    lines += pairs[:_MAX_PAIRS]
    if len(pairs) > _MAX_PAIRS:
        lines.append(f"{ELLIPSIS} and {plural(len(pairs) - _MAX_PAIRS, 'more pair')} of ranks")
    lines += [f"{one_line(op, 28)}: {_describe_collectives(nbytes)}" for op, nbytes in ops.items()]
    return "\n".join(lines)


def _bytes_between(trace: Trace, matrix: list[list[int]]) -> str:
    """Describe the number of bytes, in messages or in collectives, that are sent between hosts."""
    crossing = sum(
        nbytes
        for src, row in enumerate(matrix)
        for dst, nbytes in enumerate(row)
        if trace.between_hosts((src, dst))
    )
    given = [event for event in trace if event.is_collective]
    wide = sum(_format_bytes(event) for event in given if trace.between_hosts(event.group_ranks))
    sent, handed = sum(map(sum, matrix)), sum(map(_format_bytes, given))
    parts = [f"{crossing:,} of {sent:,} B sent"] if sent else []
    parts += [f"{wide:,} of {handed:,} B passed to collectives"] if handed else []
    return "".join(f"; {part}" for part in parts)


def _describe_collectives(nbytes: list[int]) -> str:
    if len(set(nbytes)) == 1:
        return f"each rank passed {nbytes[0]:,} B"
    shown = ", ".join(f"rank {r} {n:,} B" for r, n in enumerate(nbytes[:_MAX_PAIRS]))
    rest = len(nbytes) - _MAX_PAIRS
    return f"passed by {shown}" + (
        f", {ELLIPSIS} and {plural(rest, 'more rank')}" if rest > 0 else ""
    )
