"""Draw who waits for whom when no rank can go on, and say the same in words.

Deadlock | RankTimeout | Diagnosis | Run -> waits -> cycles() -> wait_graph() -> Picture
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from helpers.ranks.failures import Deadlock, RankTimeout
from helpers.ranks.run import Run
from helpers.trace.events import Diagnosis, Wait
from helpers.views.palette import FAILURE, INK, SPAN, WAIT, Look
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import one_line, plural
from helpers.views.sequence import label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Edge = tuple[int, int]

_MOST_EDGES = 300
_MOST_RINGS = 4
_WRITTEN_UP_TO = 16
_NODE_POINTS = 27
_WIDTH = 7.6
_LEGEND_HEIGHT = 0.35
# Height of the page in inches and of the drawing in radii: for 2 ranks, for a few, for many.
_PAGES = ((1.9, 0.45), (4.2, 1.45), (6.2, 1.32))
# What a rank is doing -> its marker, look, and the name of that in the legend.
_SHAPES: dict[str, tuple[str, Look]] = {
    "waits in a call": ("o", WAIT),
    "has returned": ("s", SPAN),
    "failed or died": ("D", FAILURE),
    "is in no call": ("h", SPAN),
}


def wait_graph(what: Deadlock | RankTimeout | Diagnosis | Run) -> Picture:
    """Draw ranks as nodes, with an arrow from each to those for whom it waits; cycles stand out.

    Takes the failure, its diagnosis, or the run that ended so. Raises TypeError for anything
    else, ValueError for a run whose ranks were not waiting for each other.
    """
    kind, waits, guilty = _take(what)
    rings = cycles(waits)
    figure = _draw(waits, rings, guilty)
    return Picture(figure, _text(kind, waits, rings))


def _take(what: object) -> tuple[str, tuple[Wait, ...], tuple[int, ...]]:
    if isinstance(what, Run):
        if not isinstance(what.failure, Deadlock | RankTimeout):
            how = type(what.failure).__name__ if what.failure else "without a failure"
            raise ValueError(
                f"this run ended {how}: no rank was left waiting, so there is no wait graph. "
                f"It is drawn of a Deadlock or a RankTimeout."
            )
        what = what.failure
    if isinstance(what, Deadlock):
        what = what.diagnosis
    if isinstance(what, Diagnosis):
        return what.kind.replace("_", " "), what.waits, what.guilty
    if isinstance(what, RankTimeout):
        return "time used up", what.waits, ()
    raise TypeError(
        f"a wait graph is drawn from a Deadlock, a RankTimeout or a Run that ended in one, not "
        f"from {type(what).__name__}. launch(..., on_failure='return') gives such a Run."
    )


def cycles(waits: Sequence[Wait]) -> list[tuple[int, ...]]:
    """Find the shortest cycle through each rank that is in one; each cycle once.

    A cycle is given from its lowest rank on, in the order of waiting.
    """
    awaited = {wait.rank: wait.waits_for for wait in waits}
    found = {ring for rank in awaited if (ring := _shortest_ring(rank, awaited))}
    return sorted(found)


def _shortest_ring(start: int, awaited: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Search breadth first from a rank until it is met again."""
    came_from = {start: start}
    queue = [start]
    for rank in queue:
        for other in awaited.get(rank, ()):
            if other == start:
                return _ring_to(rank, start, came_from)
            if other not in came_from:
                came_from[other] = rank
                queue.append(other)
    return ()


def _ring_to(last: int, start: int, came_from: dict[int, int]) -> tuple[int, ...]:
    path = [last]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    path.reverse()
    lowest = path.index(min(path))
    return (*path[lowest:], *path[:lowest])


def _text(kind: str, waits: Sequence[Wait], rings: list[tuple[int, ...]]) -> str:
    head = f"wait graph of {plural(len(waits), 'rank')}: {one_line(kind)}"
    shown = [" → ".join(map(str, (*ring, ring[0]))) for ring in rings[:_MOST_RINGS]]
    if shown:
        head += f"{'' if kind == 'cycle' else ', cycle'} {', '.join(shown)}"
    return "\n".join([head, *(_sentence(wait) for wait in waits)])


def _sentence(wait: Wait) -> str:
    if wait.event is None:
        return f"rank {wait.rank}: {one_line(wait.state, 120)}"
    names = ", ".join(map(str, wait.waits_for[:16])) + (", …" if len(wait.waits_for) > 16 else "")
    whom = f"rank{'s' if len(wait.waits_for) > 1 else ''} {names}" if names else "nobody it names"
    return f"rank {wait.rank} waits for {whom} ({_call_and_place(wait)})"


def _call_and_place(wait: Wait) -> str:
    where = f", {wait.event.where}" if wait.event and wait.event.where else ""
    return one_line(f"{wait.call}{where}", 80)


def _draw(waits: Sequence[Wait], rings: list[tuple[int, ...]], guilty: tuple[int, ...]) -> Figure:
    small = len(waits) > _WRITTEN_UP_TO
    height, reach = _PAGES[0 if len(waits) <= 2 else 1 if len(waits) <= 6 else 2]
    figure = new_figure(_WIDTH, height)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_ylim(-reach, reach)
    across = reach * _WIDTH / (height - _LEGEND_HEIGHT)
    axes.set_xlim(-across, across)
    spots = _spots([wait.rank for wait in waits])
    in_ring = {edge for ring in rings for edge in zip(ring, (*ring[1:], ring[0]), strict=True)}
    _draw_arrows(axes, _edges(waits), in_ring, spots, small)
    _draw_nodes(axes, waits, spots, guilty, small)
    if not small:
        look_first = guilty if len(guilty) < len(waits) else ()
        for wait in waits:
            _draw_name(axes, wait, spots[wait.rank], wait.rank in look_first)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _spots(ranks: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Place ranks on a circle, clockwise, rank 0 on top; two of them side by side."""
    if len(ranks) == 2:
        return {ranks[0]: (-0.8, 0.0), ranks[1]: (0.8, 0.0)}
    step = 2 * math.pi / max(1, len(ranks))
    return {r: (math.sin(i * step), math.cos(i * step)) for i, r in enumerate(ranks)}


def _edges(waits: Sequence[Wait]) -> list[Edge]:
    ranks = {wait.rank for wait in waits}
    edges = {(wait.rank, other) for wait in waits for other in wait.waits_for}
    return sorted(e for e in edges if e[1] in ranks and e[0] != e[1])[:_MOST_EDGES]


def _draw_arrows(
    axes: Axes,
    edges: list[Edge],
    in_ring: set[Edge],
    spots: dict[int, tuple[float, float]],
    small: bool,
) -> None:
    from matplotlib.patches import FancyArrowPatch

    gap = _NODE_POINTS * (0.35 if small else 0.62)
    named: set[bool] = set()
    for src, dst in edges:
        ring = (src, dst) in in_ring
        bend = 0.22 if (dst, src) in edges else 0.0
        axes.add_patch(
            FancyArrowPatch(
                spots[src],
                spots[dst],
                arrowstyle="-|>",
                connectionstyle=f"arc3,rad={bend}",
                mutation_scale=18 if ring and not small else 11,
                color=FAILURE.color if ring else WAIT.color,
                linestyle="-" if ring else (0, (4, 2)),
                linewidth=(1.2 if small else 2.6) if ring else 1.3,
                shrinkA=gap,
                shrinkB=gap,
                zorder=3 if ring else 2,
            )
        )
        if ring not in named:
            named.add(ring)
            axes.plot(
                [],
                [],
                color=FAILURE.color if ring else WAIT.color,
                linestyle="-" if ring else "--",
                linewidth=2.6 if ring else 1.3,
                label="waits for, in a cycle" if ring else "waits for",
            )


def _shape_of(wait: Wait) -> str:
    if wait.event is not None:
        return "waits in a call"
    if "returned" in wait.state:
        return "has returned"
    if any(word in wait.state for word in ("died", "failed", "raised")):
        return "failed or died"
    return "is in no call"


def _draw_nodes(
    axes: Axes,
    waits: Sequence[Wait],
    spots: dict[int, tuple[float, float]],
    guilty: tuple[int, ...],
    small: bool,
) -> None:
    for shape, (marker, look) in _SHAPES.items():
        members = [wait.rank for wait in waits if _shape_of(wait) == shape]
        if members:
            axes.scatter(
                [spots[rank][0] for rank in members],
                [spots[rank][1] for rank in members],
                s=(_NODE_POINTS * (0.5 if small else 1.0)) ** 2,
                marker=marker,
                facecolor=look.tint,
                edgecolor=look.color,
                linewidth=[2.8 if rank in guilty else 1.2 for rank in members],
                zorder=4,
                clip_on=False,
            )
            axes.plot(
                [],
                [],
                linestyle="none",
                marker=marker,
                markersize=9,
                markerfacecolor=look.tint,
                markeredgecolor=look.color,
                label=shape,
            )
    for rank, (x, y) in spots.items():
        size = 6.5 if small else 10.5
        axes.text(x, y, str(rank), ha="center", va="center", fontsize=size, weight="bold", zorder=5)


def _draw_name(axes: Axes, wait: Wait, spot: tuple[float, float], look_first: bool) -> None:
    """Write next to a node, on the outside, its call and the line of it."""
    x, y = spot
    across = 0 if abs(x) < 0.2 else math.copysign(1, x)
    lines = [one_line(wait.state, 34)] if wait.event is None else [label_of(wait.event)]
    if wait.event is not None and wait.event.where is not None:
        lines.append(one_line(str(wait.event.where), 34))
    lines += ["look here first"] if look_first else []
    axes.annotate(
        "\n".join(lines),
        spot,
        xytext=(across * _NODE_POINTS * 0.85, 0 if across else math.copysign(23, y)),
        textcoords="offset points",
        ha="center" if not across else "left" if across > 0 else "right",
        va="center" if across else "bottom" if y > 0 else "top",
        fontsize=8.5,
        color=INK,
        parse_math=False,
        annotation_clip=False,
    )
