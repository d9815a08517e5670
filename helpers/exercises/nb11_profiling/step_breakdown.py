"""11.2 Where the time of a step is spent (12 min, ●●●○○)

- Each moment of a step belongs to one of four parts. In which order do you need to test for them?
- First clip every span to the step, using `max(start, begin)` and `min(end, stop)`, and leave out spans
  outside the step. Then measure the union of one kind, of two kinds, and of all three. Each kind's part is
  the amount by which the union grows when you add this kind.
- upto(kinds) = covered(the clipped spans of these kinds). compute = upto(compute); exposed = upto(compute,
  communication) - compute; data = upto(compute, communication, data) - upto(compute, communication); idle =
  stop - begin - upto(compute, communication, data).
"""

from helpers.checks.author import *
from helpers.exercises.nb11_profiling.shared import (
    CLOCK_STARTS,
    DIGITS,
    EMPTY_LIST_ADVICE,
    Interval,
    Span,
    clip_spans,
    covered_ms,
    draw_spans,
    intervals_of,
)

KINDS = ("compute", "communication", "data")


def case(draw: Draw) -> Case:
    count, begin = draw.of(1, 2, 3, 3, 4, 0), draw.of(*CLOCK_STARTS)
    if draw.low:
        count, begin = min(count, 2), 0.0
    steps: list[Interval] = []
    now = begin
    for _ in range(count):
        # a checkpoint, or an evaluation, between steps
        now += draw.of(0.0, 0.0, draw.whole(1, 8) / 4)
        length = draw.whole(4, 60) / 4
        if draw.low:
            now, length = float(round(now)), 8.0
        steps.append((now, now + length))
        now = steps[-1][1]
    length = max(2, int(now - begin))
    counts = {kind: draw.of(0, 1, 2, 3, 4) * max(1, count) for kind in KINDS}
    counts["label"] = draw.whole(0, 3)
    if draw.low:
        counts = {kind: draw.of(0, 1, 2) for kind in counts}
    spans = draw_spans(draw, begin - 2, length + 2, counts)
    if count and draw.of(True, False):  # gradients may still be in flight when the next step begins
        spans.append(("communication", steps[0][0] + 1, steps[-1][1] + 3))
    if count > 1 and draw.of(True, False, False):
        steps.reverse()
    return Case(
        f"{plural(count, 'step')}, {plural(len(spans), 'span')}, on a clock that begins at {begin:g} ms",
        [(spans, steps)],
        right=breakdown(spans, steps),
        tolerance=1e-6,
        telling=count > 0 and len(spans) > 1,
    )


def breakdown(spans: list[Span], steps: list[Interval]) -> list[dict[str, float]]:
    """Return each step's parts."""
    found = []
    for begin, end in steps:
        inside = clip_spans(spans, begin, end)
        parts, before = {}, 0.0
        for count, kind in enumerate(KINDS, 1):
            until = covered_ms(intervals_of(inside, *KINDS[:count]))
            parts["exposed" if kind == "communication" else kind] = until - before
            before = until
        parts["idle"] = end - begin - before
        found.append({part: round(length, DIGITS) for part, length in parts.items()})
    return found


EXERCISE = Exercise(case, failed=(EMPTY_LIST_ADVICE,), kind=Kind.LOCAL, sizes=(1,))
