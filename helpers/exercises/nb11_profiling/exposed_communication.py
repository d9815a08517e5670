"""11.1 Exposed communication (8 min, ●●○○○)

- Draw two spans of communication and one of computation, overlapping each other. Which milliseconds should
  you count?
- Take all moments with computation, communication or both, and remove the moments with computation. The
  remaining moments are exposed. `covered` returns how much time a list of intervals covers in total.
- compute = intervals of kind "compute", communication = those of kind "communication"; return
  covered(compute + communication) - covered(compute).
"""

from helpers.checks.author import *
from helpers.exercises.nb11_profiling.shared import (
    CLOCK_STARTS,
    DIGITS,
    Span,
    covered_ms,
    draw_spans,
    intervals_of,
)

LABELS = {
    "both": "communication and computation, ",
    "all hidden": "computation during all communication, ",
    "no computation": "no computation, ",
    "no communication": "no communication, ",
    "empty": "",
}


def case(draw: Draw) -> Case:
    length, begin = draw.whole(4, 40), draw.of(*CLOCK_STARTS)
    if draw.low:
        begin = 0.0
    # so that an answer of 0 fails in nearly every case
    nothing = draw.of("no communication", "empty")
    way = draw.of(*["both"] * 12, "no computation", "no computation", "all hidden", nothing)
    counts = {
        "compute": 0 if way == "no computation" else draw.whole(1, 6),
        "communication": 0 if way == "no communication" else draw.whole(1, 5),
        "data": draw.whole(0, 2),
        "label": draw.whole(0, 2),
    }
    spans = draw_spans(draw, begin, length, counts) if way != "empty" else []
    if way == "all hidden":
        communication = intervals_of(spans, "communication")
        first, last = min(s for s, _ in communication), max(e for _, e in communication)
        middle = (first + last) / 2
        spans += [("compute", first - 1, middle), ("compute", middle, last)]
    if way == "both" and not round(exposed_ms(spans), DIGITS):
        last = max(e for _, e in intervals_of(spans, "compute", "communication"))
        spans.append(("communication", last - 1, last + 1.625))
    return Case(
        f"{LABELS[way]}{plural(len(spans), 'span')} on a clock that begins at {begin:g} ms",
        [(spans,)],
        right=round(exposed_ms(spans), DIGITS),
        tolerance=1e-6,
        telling=way == "both",
    )


def exposed_ms(spans: list[Span]) -> float:
    """Return the milliseconds of communication not hidden by computation."""
    return covered_ms(intervals_of(spans, "compute", "communication")) - covered_ms(
        intervals_of(spans, "compute")
    )


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
