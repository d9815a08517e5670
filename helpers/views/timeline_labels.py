"""Which labels of a timeline there is room for, and where they go.

Labels stand above their bars, on one of a few levels. One that would cover another moves a little
to the left or to a higher level; where there is no room left it is not drawn. In a crowded lane
only bars that are as long as their names are named: there, a name next to its bar misleads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_FARTHEST_SHIFT = 0.14
_CROWDED = 0.6


@dataclass(frozen=True, slots=True)
class Wanted:
    """A label that asks for a place at `x` in a lane.

    `width` is its own, `room` its bar's.
    """

    lane: int
    x: float
    width: float
    room: float
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label in its place: level 0 is the one next to the bars."""

    level: int
    x: float
    of: Wanted


def place_labels(wanted: Iterable[Wanted], levels: int, length: float) -> tuple[Label, ...]:
    """Place labels, each as near to its bar as there is room.

    From right to left: then the line from a bar up to a label on a higher level has the lower
    labels to its right, and crosses none of them.
    """
    free: dict[tuple[int, int], float] = {}
    placed = []
    fitting = _thin_out(list(wanted), levels, length)
    for label in sorted(fitting, key=lambda w: w.x, reverse=True):
        nearest = min(label.x, length - label.width)
        spots = []
        for level in range(levels):
            x = min(nearest, free.get((label.lane, level), length) - label.width)
            if x >= 0 and nearest - x <= _FARTHEST_SHIFT * length:
                spots.append((nearest - x, level, x))
        if spots:
            _, level, x = min(spots)
            free[label.lane, level] = x
            placed.append(Label(level, x, label))
    return tuple(placed)


def _thin_out(wanted: list[Wanted], levels: int, length: float) -> list[Wanted]:
    widths: dict[int, float] = {}
    for label in wanted:
        widths[label.lane] = widths.get(label.lane, 0.0) + label.width
    crowded = {lane for lane, width in widths.items() if width > _CROWDED * levels * length}
    return [w for w in wanted if w.lane not in crowded or w.room >= 0.9 * w.width]
