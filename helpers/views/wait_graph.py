"""Draw the ranks' waits for each other in a deadlock, and describe them in words.

Deadlock | RankTimeout | Diagnosis | Run -> waits -> cycles() -> wait_graph() -> Picture
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from helpers.ranks.failures import Deadlock, RankTimeout, name_rank
from helpers.ranks.run import Run
from helpers.trace.events import Diagnosis, Wait
from helpers.views.drawing import Area, Drawing, Line, Mark, Word
from helpers.views.palette import FAILURE, SPAN, WAIT, Look
from helpers.views.picture import Picture
from helpers.views.plain import one_line, plural
from helpers.views.sequence import label_of

Edge = tuple[int, int]
Point = tuple[float, float]

_MAX_EDGES = 300
_MAX_CYCLES_LISTED = 4
_WRITTEN_UP_TO = 16
_NODE = 19.0
_WIDTH = 720.0
_LINES = (("waits for, in a cycle", True), ("waits for", False))
# A rank's state -> the number of corners of its shape, and its look.
_SHAPES: dict[str, tuple[int, Look]] = {
    "waits in a call": (36, WAIT),
    "has returned": (4, SPAN),
    "failed or died": (4, FAILURE),
    "not in a communication call": (6, SPAN),
}


def wait_graph(source: Deadlock | RankTimeout | Diagnosis | Run) -> Picture:
    """Draw ranks as nodes, with arrows from each rank to the ranks that it waits for. Cycles are emphasized.

    Accepts the failure, its diagnosis, or the failed run. Raises TypeError for anything else, and ValueError
    for a run whose ranks were not waiting for each other.
    """
    kind, waits, guilty, hosts = _read_failure(source)
    rings = cycles(waits)
    return Picture(
        _draw_graph(waits, rings, guilty, hosts), _describe_graph(kind, waits, rings, hosts)
    )


def _read_failure(source: object) -> tuple[str, tuple[Wait, ...], tuple[int, ...], tuple[str, ...]]:
    """Return the kind of failure, the waits, the guilty ranks, and the host of each rank, if any."""
    if isinstance(source, Run):
        if not isinstance(source.failure, Deadlock | RankTimeout):
            how = type(source.failure).__name__ if source.failure else "without a failure"
            raise ValueError(
                f"this run ended {how}. wait_graph needs a run that ended in Deadlock or RankTimeout."
            )
        source = source.failure
    run = source.run if isinstance(source, Deadlock | RankTimeout) else None
    hosts = run.hosts if run is not None else ()
    if isinstance(source, Deadlock):
        source = source.diagnosis
    if isinstance(source, Diagnosis):
        return source.kind.replace("_", " "), source.waits, source.guilty, hosts
    if isinstance(source, RankTimeout):
        return "time used up", source.waits, (), hosts
    raise TypeError(
        f"a wait graph is drawn from a Deadlock, a RankTimeout or a Run that ended in one, not "
        f"from {type(source).__name__}. launch(..., on_failure='return') gives such a Run."
    )


def cycles(waits: Sequence[Wait]) -> list[tuple[int, ...]]:
    """Find the shortest cycle through each rank, if any. Return each cycle once.

    A cycle begins with its lowest rank and follows the waits.
    """
    awaited = {wait.rank: wait.waits_for for wait in waits}
    found = {ring for rank in awaited if (ring := _shortest_ring(rank, awaited))}
    return sorted(found)


def _shortest_ring(start: int, awaited: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Search breadth first from a rank until it is reached again."""
    came_from = {start: start}
    queue = [start]
    for rank in queue:
        for other in awaited.get(rank, ()):
            if other == start:
                return _trace_back(rank, start, came_from)
            if other not in came_from:
                came_from[other] = rank
                queue.append(other)
    return ()


def _trace_back(last: int, start: int, came_from: dict[int, int]) -> tuple[int, ...]:
    path = [last]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    path.reverse()
    lowest = path.index(min(path))
    return (*path[lowest:], *path[:lowest])


def _describe_graph(
    kind: str, waits: Sequence[Wait], rings: list[tuple[int, ...]], hosts: Sequence[str]
) -> str:
    head = f"wait graph of {plural(len(waits), 'rank')}: {one_line(kind)}"
    shown = [" → ".join(map(str, (*ring, ring[0]))) for ring in rings[:_MAX_CYCLES_LISTED]]
    if shown:
        head += f"{'' if kind == 'cycle' else ', cycle'} {', '.join(shown)}"
    return "\n".join([head, *(_describe_wait(wait, hosts) for wait in waits)])


def _describe_wait(wait: Wait, hosts: Sequence[str]) -> str:
    name = one_line(name_rank(wait.rank, hosts), 90)
    if wait.event is None:
        return f"{name}: {one_line(wait.state, 120)}"
    names = ", ".join(map(str, wait.waits_for[:16])) + (", …" if len(wait.waits_for) > 16 else "")
    whom = f"rank{'s' if len(wait.waits_for) > 1 else ''} {names}" if names else "no rank"
    return f"{name} waits for {whom} ({_call_and_place(wait)})"


def _call_and_place(wait: Wait) -> str:
    where = f", {wait.event.where}" if wait.event and wait.event.where else ""
    return one_line(f"{wait.call}{where}", 80)


def _draw_graph(
    waits: Sequence[Wait],
    rings: list[tuple[int, ...]],
    guilty: tuple[int, ...],
    hosts: Sequence[str],
) -> Drawing:
    small = len(waits) > _WRITTEN_UP_TO
    radius = 0.0 if len(waits) < 3 else 84.0 if len(waits) <= 6 else 170.0
    node = 11.0 if small else _NODE
    room = 14 if small else 48 if len(waits) > 2 else 18
    height = 2 * (radius + node + room + (0 if small or not hosts else 15))
    spots = _place_on_circle([wait.rank for wait in waits], _WIDTH / 2, height / 2, radius)
    in_ring = {edge for ring in rings for edge in zip(ring, (*ring[1:], ring[0]), strict=True)}
    edges = _edges(waits)
    # draw the marks of a cycle last, on top of the others
    marks: list[Mark] = [
        _draw_arrow(edge, edge in in_ring, (edge[1], edge[0]) in edges, spots, node)
        for edge in sorted(edges, key=lambda edge: edge in in_ring)
    ]
    for wait in waits:
        style = "guilty" if wait.rank in guilty else "tint"
        marks += _draw_node(spots[wait.rank], node, *_SHAPES[_shape_of(wait)], style)
        (x, y), size = spots[wait.rank], 9.0 if small else 13.0
        marks.append(
            Word(
                ((x, y + size / 3),),
                "word",
                text=str(wait.rank),
                size=size,
                anchor="middle",
                heavy=True,
            )
        )
        if not small:
            first = wait.rank in guilty and len(guilty) < len(waits)
            host = hosts[wait.rank] if hosts else ""
            marks += _draw_wait_text(wait, spots[wait.rank], height / 2, first, host)
    ringed = [(name, edge) for name, edge in _LINES if any((e in in_ring) is edge for e in edges)]
    fixed, x = list[Mark](), 10.0
    for name, edge in ringed:
        look = FAILURE if edge else WAIT
        ends = ((x, height + 10), (x + 22, height + 10))
        fixed.append(Line(ends, "bold" if edge else "dashed", look, head=True))
        fixed.append(Word(((x + 30, height + 14),), "quiet", text=name))
        x += 44 + fixed[-1].width  # type: ignore[attr-defined]
    for shape in (s for s in _SHAPES if any(_shape_of(wait) == s for wait in waits)):
        fixed += _draw_node((x + 7, height + 10), 7.0, *_SHAPES[shape], "tint")
        fixed.append(Word(((x + 20, height + 14),), "quiet", text=shape))
        x += 34 + fixed[-1].width  # type: ignore[attr-defined]
    return Drawing(_WIDTH, height + 24, tuple(marks), tuple(fixed))


def _place_on_circle(ranks: Sequence[int], x: float, y: float, radius: float) -> dict[int, Point]:
    """Place ranks on a circle, clockwise, with rank 0 on top; two ranks are side by side."""
    if len(ranks) == 2:
        return {ranks[0]: (x - 90, y), ranks[1]: (x + 90, y)}
    step = 2 * math.pi / max(1, len(ranks))
    return {
        r: (x + 1.25 * radius * math.sin(i * step), y - radius * math.cos(i * step))
        for i, r in enumerate(ranks)
    }


def _edges(waits: Sequence[Wait]) -> list[Edge]:
    ranks = {wait.rank for wait in waits}
    edges = {(wait.rank, other) for wait in waits for other in wait.waits_for}
    return sorted(e for e in edges if e[1] in ranks and e[0] != e[1])[:_MAX_EDGES]


def _draw_arrow(edge: Edge, ring: bool, both: bool, spots: dict[int, Point], node: float) -> Line:
    """Draw a wait as an arrow. Two ranks that wait for each other have parallel arrows."""
    (x, y), (u, v) = spots[edge[0]], spots[edge[1]]
    long = math.hypot(u - x, v - y) or 1.0
    dx, dy, aside = (u - x) / long, (v - y) / long, 0.4 * node if both else 0.0
    x, y, u, v = x - dy * aside, y + dx * aside, u - dy * aside, v + dx * aside
    far, near = node + 4, node + 2
    ends = ((x + dx * near, y + dy * near), (u - dx * far, v - dy * far))
    return Line(ends, "bold" if ring else "dashed", FAILURE if ring else WAIT, head=True)


def _shape_of(wait: Wait) -> str:
    if wait.event is not None:
        return "waits in a call"
    if "returned" in wait.state:
        return "has returned"
    if any(word in wait.state for word in ("died", "failed", "raised")):
        return "failed or died"
    return "not in a communication call"


def _draw_node(spot: Point, size: float, corners: int, look: Look, style: str) -> list[Mark]:
    """Draw a rank as a shape with this number of corners. A shape with many corners looks like a circle."""
    turn = math.pi / corners if corners != 4 or look is not FAILURE else 0.0
    size *= 1.15 if corners < 10 else 1.0
    points = tuple(
        (
            spot[0] + size * math.sin(turn + 2 * math.pi * i / corners),
            spot[1] - size * math.cos(turn + 2 * math.pi * i / corners),
        )
        for i in range(corners)
    )
    return [Area(points, style, look)]


def _draw_wait_text(wait: Wait, spot: Point, middle: float, first: bool, host: str) -> list[Mark]:
    """Write a rank's call, its line and, if known, its host on the outer side of a node."""
    across = spot[0] - _WIDTH / 2
    lines = [one_line(wait.state, 34)] if wait.event is None else [label_of(wait.event)]
    if wait.event is not None and wait.event.where is not None:
        lines.append(one_line(str(wait.event.where), 34))
    lines += [f"on {one_line(host, 30)}"] if host else []
    lines += ["look here first"] if first else []
    if abs(across) < 30:
        x, anchor = spot[0], "middle"
        y = (
            spot[1] + _NODE + 16
            if spot[1] >= middle
            else spot[1] - _NODE - 8 - 15 * (len(lines) - 1)
        )
    else:
        x, anchor = spot[0] + math.copysign(_NODE + 9, across), "start" if across > 0 else "end"
        y = spot[1] + 4 - 7.5 * (len(lines) - 1)
    return [
        Word(
            ((x, y + 15 * i),),
            "quiet" if i else "word",
            text=line,
            size=11.5,
            anchor=anchor,
            heavy=not i,
        )
        for i, line in enumerate(lines)
    ]
