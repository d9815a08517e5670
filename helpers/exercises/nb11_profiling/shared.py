"""Draw spans like a profiler's, and measure them, for notebook 11.

A span is (kind, start, end), in milliseconds. Spans of one rank come from several threads: they may nest,
overlap or touch, and are unordered.
"""

from __future__ import annotations

from collections.abc import Iterable

from helpers.checks.author import *

Interval = tuple[float, float]
Span = tuple[str, float, float]

EMPTY_LIST_ADVICE = CrashAdvice(
    "empty sequence|iterable argument is empty|list index out of range",
    "A list is empty here: there may be no communication, or no spans at all. Pass a `default` to min() "
    "and max().",
)

SPAN_DIGITS = 3
"""Decimals of spans in milliseconds. So sums are exact enough to differ from 0 with every clock."""
DIGITS = 6
"""Decimals of rounded milliseconds, so that an empty remainder is 0 instead of 1e-13."""


CLOCK_STARTS = (0.0, -20.0, 5e4, -1e5)
"""Possible start times of a trace's clock, in milliseconds."""


def covered_ms(intervals: Iterable[Interval]) -> float:
    """Return the milliseconds covered by at least one interval."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def intervals_of(spans: Iterable[Span], *kinds: str) -> list[Interval]:
    """Return the intervals of spans of these kinds."""
    return [(start, end) for kind, start, end in spans if kind in kinds]


def clip_spans(spans: Iterable[Span], begin: float, end: float) -> list[Span]:
    """Return the part of each span between two times."""
    return [(kind, max(s, begin), min(e, end)) for kind, s, e in spans if s < end and e > begin]


def _draw_short_interval(draw: Draw, begin: float, length: int) -> Interval:
    """Draw a span that begins and ends at whole milliseconds."""
    start = draw.rng.randint(0, length)
    return begin + start, begin + start + draw.rng.randint(1, 4)


def draw_spans(draw: Draw, begin: float, length: int, kinds: dict[str, int]) -> list[Span]:
    """Draw spans of each kind within `length` ms; some are nested in others, and some occur twice.

    Some touch, and their ends may be any fraction of a millisecond.
    """
    spans: list[Span] = []
    if draw.low:
        spans = [
            (kind, *_draw_short_interval(draw, begin, length))
            for kind, n in kinds.items()
            for _ in range(n)
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
            if way < 0.3:  # generate an operator inside another operator
                quarter = (last - first) / 4
                spans.append((kind, first + quarter, last - 2 * quarter))
            elif way < 0.4:
                spans.append((kind, first, last))
    draw.rng.shuffle(spans)
    return [
        (kind, round(start, SPAN_DIGITS), round(end, SPAN_DIGITS)) for kind, start, end in spans
    ]
