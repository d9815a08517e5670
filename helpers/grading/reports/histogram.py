"""The distribution of totals, as the numbers that an inline SVG in the class's page is drawn from.

A template draws it, not matplotlib: it follows the page's colors, and no text in it is ever mathtext.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

BINS = 10
WIDTH, HEIGHT = 640, 190
_LEFT, _TOP, _GROUND = 34, 22, 150


@dataclass(frozen=True)
class Bar:
    """One bar, in the drawing's units, with its count and the range of shares that it covers."""

    x: float
    y: float
    width: float
    height: float
    count: int
    label: str


@dataclass(frozen=True)
class Histogram:
    """A drawing of WIDTH x HEIGHT; `middle` is where the median stands, `text` what it shows."""

    bars: tuple[Bar, ...]
    ground: int
    left: int
    width: int
    height: int
    middle: float
    text: str


def histogram(shares: Sequence[float]) -> Histogram | None:
    """Count shares from 0 to 1 in ten bins, the last with 100 % in it. None for an empty class."""
    if not shares:
        return None
    counts = [0] * BINS
    for share in shares:
        counts[min(BINS - 1, int(BINS * share + 1e-9))] += 1
    step = (WIDTH - _LEFT) / BINS
    scale = (_GROUND - _TOP) / max(counts)
    bars = tuple(
        Bar(
            x=round(_LEFT + at * step + 2, 1),
            y=round(_GROUND - count * scale, 1),
            width=round(step - 4, 1),
            height=round(count * scale, 1),
            count=count,
            label=f"{at * 10}-{at * 10 + 10}",
        )
        for at, count in enumerate(counts)
    )
    half = median(shares)
    told = ", ".join(f"{bar.label} %: {bar.count}" for bar in bars if bar.count)
    text = f"Learners by share of the points. {told}. The median is {100 * half:.0f} %."
    middle = round(_LEFT + half * (WIDTH - _LEFT), 1)
    return Histogram(bars, _GROUND, _LEFT, WIDTH, HEIGHT, middle, text)
