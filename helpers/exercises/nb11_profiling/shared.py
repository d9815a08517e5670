"""What exercises of notebook 11 share: spans as a profiler gives them, and how they are counted.

A span is (kind, start, end), in milliseconds. Spans of one rank come from several threads: they nest,
overlap, touch, and are in no order.
"""

from __future__ import annotations

from collections.abc import Iterable

from helpers.checks.author import *

Interval = tuple[float, float]
Span = tuple[str, float, float]

NOTHING = Failed(
    "empty sequence|iterable argument is empty|list index out of range",
    "A list is empty here: there may be no communication, or no spans at all. Give min() and max() a "
    "`default`.",
)

SPAN_DIGITS = 3
"""Whole microseconds: sums of spans are then exact enough to differ from 0, on any of the clocks."""
DIGITS = 6
"""Milliseconds are rounded to these: what is right is 0, not 1e-13, where nothing remains."""


CLOCKS = (0.0, -20.0, 5e4, -1e5)
"""Where a trace's clock may begin, in milliseconds."""


def covered(intervals: Iterable[Interval]) -> float:
    """Return the milliseconds in which at least one interval runs."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def of(spans: Iterable[Span], *kinds: str) -> list[Interval]:
    """Give the intervals of the spans of these kinds."""
    return [(start, end) for kind, start, end in spans if kind in kinds]


def cut(spans: Iterable[Span], begin: float, end: float) -> list[Span]:
    """Give the part of each span that lies between two moments."""
    return [(kind, max(s, begin), min(e, end)) for kind, s, e in spans if s < end and e > begin]


def _few_ms(draw: Draw, begin: float, length: int) -> Interval:
    """Draw a span that begins and ends at whole milliseconds."""
    start = draw.rng.randint(0, length)
    return begin + start, begin + start + draw.rng.randint(1, 4)


def draw_spans(draw: Draw, begin: float, length: int, kinds: dict[str, int]) -> list[Span]:
    """Draw that many spans of each kind within `length` ms, some nested in others, some the same twice.

    Some meet, and none of their ends need be a simple fraction of a millisecond.
    """
    spans: list[Span] = []
    if draw.low:
        spans = [
            (kind, *_few_ms(draw, begin, length)) for kind, n in kinds.items() for _ in range(n)
        ]
        draw.rng.shuffle(spans)
        return spans
    stretch = draw.of(1.0, 1.0371)
    for kind, count in kinds.items():
        for _ in range(count):
            start = stretch * draw.whole(0, 4 * length) / 4
            end = start + stretch * draw.whole(0, 2 * length) / 8
            spans.append((kind, begin + start, begin + end))
            way = draw.rng.random()
            _, first, last = spans[-1]
            if way < 0.3:  # an operator within an operator
                quarter = (last - first) / 4
                spans.append((kind, first + quarter, last - 2 * quarter))
            elif way < 0.4:
                spans.append((kind, first, last))
    draw.rng.shuffle(spans)
    return [
        (kind, round(start, SPAN_DIGITS), round(end, SPAN_DIGITS)) for kind, start, end in spans
    ]
