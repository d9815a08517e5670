"""14.3 The bubble (5 min, ●○○○○)

- All stages together could have worked for (last end - first start) x number of stages. How much of that did
  they?
- The first start and the last end are taken over all spans of all stages. Add up the lengths of all spans,
  divide by the time there was, and subtract from 1.
- spans = [span for stage in busy for span in stage]; length = max(end for _, end in spans) - min(start for
  start, _ in spans); 1 - sum(end - start for start, end in spans) / (length * len(busy))
"""

from helpers.checks.author import *
from helpers.views.plain import plural

Busy = list[list[tuple[float, float]]]


def case(draw: Draw) -> Case:
    stages, most = draw.whole(1, 5), draw.whole(1, 6)
    unit, origin = draw.of(1.0, 0.001, 1e9), draw.of(0.0, 250.0, -40.0, 1e4)
    busy: Busy = []
    for _ in range(stages):
        now, spans = origin + draw.whole(0, 30) / 7, []
        for _ in range(draw.whole(1, most)):
            length = draw.whole(1, 20) / 7
            spans.append((now * unit, (now + length) * unit))
            now += length + draw.of(0.0, 0.75, 0.1)
        busy.append(spans)
    if draw.of(True, False, False):
        busy.insert(draw.whole(0, stages), [])  # a stage that never works
    kind = draw.of("one is always busy", "in any order", "in any order", "as they come")
    if kind == "in any order":
        for spans in busy:
            draw.rng.shuffle(spans)
    elif kind == "one is always busy":
        busy = [[(origin, origin + 2.0), (origin + 2.0, origin + 6.0)]]
    right = idle(busy)
    known = [spans for spans in busy if spans]
    begin, end = min(known[0])[0], max(known[-1])[1]
    _first, _last = min(s[0][0] for s in known), max(s[-1][1] for s in known)
    sum(b - a for spans in busy for a, b in spans)
    [max(b for _, b in s) - min(a for a, _ in s) for s in known]
    max(b for s in known for _, b in s)
    n, _m = len(busy), len(busy[0]) // 2
    return Case(
        f"{plural(n, 'stage')}, {kind}, from {begin:.4g} to {end:.4g}",
        [(busy,)],
        right=right,
        tolerance=1e-6,
    )


def idle(busy: Busy) -> float:
    """Give the share of the time in which stages idle."""
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


EXERCISE = Exercise(
    case,
    kind=Kind.LOCAL,
)
