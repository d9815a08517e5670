"""11.1 Exposed communication (8 min, ●●○○○)

- Draw two spans of communication and one of computation that overlap. Which milliseconds are asked for?
- Some moments have computation, or communication, or both. Exposed are those of "either" that are not those
  of "computation": `covered` gives the length of any union.
- compute = intervals of kind "compute", communication = those of kind "communication"; return
  covered(compute + communication) - covered(compute).
"""

from collections.abc import Callable
from functools import partial

from helpers.checks.author import *
from helpers.exercises.nb11_profiling.shared import (
    CLOCKS,
    DIGITS,
    Interval,
    Span,
    covered,
    covered_by_last_end,
    draw_spans,
    of,
    summed,
)
from helpers.views.plain import plural

ORDER = (
    "An operator calls others: a span may lie within one that began earlier. Keep the latest end so far, "
    "not that of the span before."
)
TWICE = (
    "Two collectives in flight at once, and two operators, one within the other, count once: unite the spans "
    "of a kind before you add up lengths."
)


SAID = {
    "both": "communication and computation, ",
    "all hidden": "computation during all communication, ",
    "no computation": "no computation, ",
    "no communication": "no communication, ",
    "empty": "",
}
CLOCK = (
    "The clock may begin anywhere, also far below 0. What is counted up to, before the first span, is "
    '`float("-inf")`.'
)
SORT = (
    "The spans come in no order: sort them before you go through them from the first to the last."
)
UNITS = "The spans are in milliseconds already, and so is what is asked for."


def case(draw: Draw) -> Case:
    length, begin = draw.whole(4, 40), draw.of(*CLOCKS)
    way = draw.of(
        "both", "both", "both", "both", "all hidden", "no computation", "no communication", "empty"
    )
    counts = {
        "compute": 0 if way == "no computation" else draw.whole(1, 6),
        "communication": 0 if way == "no communication" else draw.whole(1, 5),
        "data": draw.whole(0, 2),
        "label": draw.whole(0, 2),
    }
    spans = draw_spans(draw, begin, length, counts) if way != "empty" else []
    if way == "all hidden":
        communication = of(spans, "communication")
        first, last = min(s for s, _ in communication), max(e for _, e in communication)
        middle = (first + last) / 2
        spans += [("compute", first - 1, middle), ("compute", middle, last)]
    return Case(
        f"{SAID[way]}{plural(len(spans), 'span')} on a clock that begins at {begin:g} ms",
        [(spans,)],
        right=round(exposed(spans), DIGITS),
        tolerance=1e-6,
    )


def exposed(spans: list[Span]) -> float:
    """Give the milliseconds of communication that no computation hides."""
    return covered(of(spans, "compute", "communication")) - covered(of(spans, "compute"))


def mistakes(spans: list[Span]) -> list[Mistake]:
    compute, communication = of(spans, "compute"), of(spans, "communication")
    both = [(max(s, a), min(e, b)) for s, e in communication for a, b in compute if s < b and a < e]
    rest = of(spans, "compute", "data", "label")
    labels = of(spans, "compute", "label")
    right = exposed(spans)
    of_all = covered(of(spans, "compute", "communication", "data", "label"))
    with_data = of(spans, "compute", "data")
    least = min([s for s, _ in communication], default=0.0)
    most = max([e for _, e in communication], default=0.0)
    hidden = summed(both)

    def by(measure: Callable[[list[Interval]], float]) -> float:
        return measure([*compute, *communication]) - measure(compute)

    return [
        *(Mistake(right * unit, UNITS) for unit in (1e3, 1e-3) if right),
        *(Mistake(by(partial(covered, since=since)), CLOCK) for since in (0.0, -1.0, -1e3)),
        Mistake(by(partial(covered, in_order=False)), SORT),
        Mistake(
            covered(of(spans, "compute", "communication"), in_order=False) - covered(compute), SORT
        ),
        Mistake(
            covered(communication),
            "This is all communication, also what runs while the rank computes.",
        ),
        Mistake(
            summed(communication),
            "This adds up all communication. What runs while the rank computes is not asked for, and what is "
            "in flight at once counts once.",
        ),
        Mistake(covered(both), "This is what is hidden; asked for is the rest."),
        Mistake(summed(communication) - hidden, TWICE),
        Mistake(max(0.0, summed(communication) - hidden), TWICE),
        Mistake(covered(communication) - hidden, TWICE),
        Mistake(max(0.0, covered(communication) - hidden), TWICE),
        Mistake(summed(communication) - covered(both), TWICE),
        Mistake(max(0.0, summed(communication) - summed(compute)), SUMS),
        Mistake(summed(communication) - summed(compute), SUMS),
        Mistake(max(0.0, covered(communication) - covered(compute)), SUMS),
        Mistake(covered(communication) - covered(compute), SUMS),
        Mistake(of_all - covered(rest), HIDES),
        Mistake(covered([*with_data, *communication]) - covered(with_data), HIDES),
        Mistake(covered([*labels, *communication]) - covered(labels), HIDES),
        Mistake(
            covered_by_last_end([*compute, *communication]) - covered_by_last_end(compute), ORDER
        ),
        Mistake(
            covered([*compute, *communication]) - summed(compute),
            TWICE,
        ),
        Mistake(
            most - least - covered(compute),
            "Between the first and the last communication there is time without any.",
        ),
    ]


SUMS = (
    "Computation hides only what runs at the same time: the two sums say nothing of when that is."
)
HIDES = "Only computation hides. A loader that runs, or a label around it all, does no work for the model."

EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
