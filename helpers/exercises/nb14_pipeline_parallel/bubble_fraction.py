"""14.3 The bubble (5 min, ●○○○○)

- All stages together could have worked for (last end - first start) x number of stages. For how much of
  that time did they work?
- The first start and the last end are taken over all spans of all stages. Add up the lengths of all spans,
  divide by the total time of all stages, and subtract from 1.
- spans = [span for stage in busy for span in stage]; length = max(end for _, end in spans) - min(start for
  start, _ in spans); 1 - sum(end - start for start, end in spans) / (length * len(busy))
"""

from helpers.checks.author import *

BusyIntervals = list[list[tuple[float, float]]]


def case(draw: Draw) -> Case:
    stages, most = draw.whole(2, 5), draw.whole(1, 6)
    unit, origin = draw.of(1.0, 0.001, 1e9), draw.of(0.0, 250.0, -40.0, 1e4)
    busy: BusyIntervals = []
    for _ in range(stages):
        now, spans = origin + draw.whole(0, 30) / 7, []
        for _ in range(draw.whole(1, most)):
            length = draw.whole(1, 20) / 7
            spans.append((now * unit, (now + length) * unit))
            now += length + draw.of(0.0, 0.75, 0.1)
        busy.append(spans)
    if draw.of(True, False, False):
        busy.insert(draw.whole(0, stages), [])  # a stage that never works
    kind = draw.of(*["in any order"] * 5, *["as they come"] * 4, "one is always busy")
    if kind == "in any order":
        for spans in busy:
            draw.rng.shuffle(spans)
    elif kind == "one is always busy":
        busy = [[(origin, origin + 2.0), (origin + 2.0, origin + 6.0)]]
    spans = [span for stage in busy for span in stage]
    begin, end = min(start for start, _ in spans), max(end for _, end in spans)
    return Case(
        f"{plural(len(busy), 'stage')}, {kind}, from {begin:.4g} to {end:.4g}",
        [(busy,)],
        right=idle_fraction(busy),
        tolerance=1e-6,
    )


def idle_fraction(busy: BusyIntervals) -> float:
    """Return the share of the time in which stages are idle."""
    spans = [span for stage in busy for span in stage]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    return 1 - sum(end - start for start, end in spans) / (length * len(busy))


EXERCISE = Exercise(case, kind=Kind.LOCAL)
