"""11.2 Where a step goes (12 min, ●●●○○)

- Each moment of a step belongs to one of four. In which order do you ask?
- Cut every span to the step first: `max(start, begin)`, `min(end, stop)`, and leave out what lies outside.
  Then unite one kind after the other: what a further kind adds is its part.
- upto(kinds) = covered of the cut spans of these kinds. compute = upto(compute); exposed = upto(compute,
  communication) - compute; data = upto(compute, communication, data) - upto(compute, communication); idle =
  stop - begin - upto(compute, communication, data).
"""

from collections.abc import Callable
from functools import partial

from helpers.checks.author import *
from helpers.exercises.nb11_profiling.shared import (
    CLOCKS,
    DIGITS,
    NOTHING,
    Interval,
    Span,
    covered,
    covered_by_last_end,
    cut,
    draw_spans,
    of,
    summed,
)
from helpers.views.plain import plural

KINDS = ("compute", "communication", "data")
PARTS = ("compute", "exposed", "data", "idle")

Found = list[dict[str, float]]


def case(draw: Draw) -> Case:
    count, begin = draw.of(1, 2, 3, 3, 4, 0), draw.of(*CLOCKS)
    steps: list[Interval] = []
    now = begin
    for _ in range(count):
        now += draw.of(0.0, 0.0, draw.whole(1, 8) / 4)  # a checkpoint, or a test, between steps
        steps.append((now, now + draw.whole(4, 60) / 4))
        now = steps[-1][1]
    length = max(2, int(now - begin))
    counts = {kind: draw.of(0, 1, 2, 3, 4) * max(1, count) for kind in KINDS}
    counts["label"] = draw.whole(0, 3)
    spans = draw_spans(draw, begin - 2, length + 2, counts)
    if count and draw.of(True, False):  # the gradients of one step while the next one begins
        spans.append(("communication", steps[0][0] + 1, steps[-1][1] + 3))
    if count > 1 and draw.of(True, False, False):
        steps.reverse()
    return Case(
        f"{plural(count, 'step')}, {plural(len(spans), 'span')}, on a clock that begins at {begin:g} ms",
        [(spans, steps)],
        right=breakdown(spans, steps),
        tolerance=1e-6,
    )


def breakdown(
    spans: list[Span],
    steps: list[Interval],
    order: tuple[str, ...] = KINDS,
    measure: Callable[[list[Interval]], float] = covered,
    *,
    within: Callable[[list[Span], float, float], list[Span]] = cut,
) -> Found:
    """Give each step's parts.

    order: which kind is asked for first; measure: how long a union is; within: what belongs to a step.
    """
    found = []
    for begin, end in steps:
        inside = within(spans, begin, end)
        parts, before = {}, 0.0
        for at, kind in enumerate(order, 1):
            until = measure(of(inside, *order[:at]))
            parts["exposed" if kind == "communication" else kind] = until - before
            before = until
        parts["idle"] = end - begin - before
        found.append({part: round(parts[part], DIGITS) for part in PARTS})
    return found


def of_all_steps(found: Found) -> dict[str, float]:
    return {part: sum(step[part] for step in found) for part in PARTS}


def alone(spans: list[Span], steps: list[Interval], *, once: bool, rest: bool) -> Found:
    """Give each kind its own length, whatever else runs. once: united; rest: exposed is right."""
    found = []
    for (begin, end), right in zip(steps, breakdown(spans, steps), strict=True):
        inside = cut(spans, begin, end)
        compute, communication, data = (
            (covered if once else summed)(of(inside, kind)) for kind in KINDS
        )
        exposed = right["exposed"] if rest else communication
        idle = end - begin - compute - exposed - data
        parts = zip(PARTS, (compute, exposed, data, idle), strict=True)
        found.append({part: round(length, DIGITS) for part, length in parts})
    return found


def no_less(found: Found) -> Found:
    return [step | {"idle": max(0.0, step["idle"])} for step in found]


def mistakes(spans: list[Span], steps: list[Interval]) -> list[Mistake]:
    right = breakdown(spans, steps)
    own = [
        alone(spans, steps, once=once, rest=rest)
        for once in (True, False)
        for rest in (True, False)
    ]
    as_label = [(("compute" if kind == "label" else kind), s, e) for kind, s, e in spans]
    idles = [step | {"idle": step["idle"] + step["data"], "data": 0.0} for step in right]
    return [
        Mistake(of_all_steps(right), "One dict for each step, in a list, as `steps` has them."),
        Mistake(
            breakdown(spans, sorted(steps)), "One dict for each step, in the order of `steps`."
        ),
        *(
            Mistake(change(breakdown(spans, steps, within=within)), words)
            for within, words in WITHIN
            for change in (list, no_less)
        ),
        Mistake(breakdown(spans, steps, measure=partial(covered, since=0.0)), CLOCK),
        Mistake(breakdown(spans, steps, measure=partial(covered, since=-1e3)), CLOCK),
        Mistake(breakdown(spans, steps, measure=partial(covered, in_order=False)), SORT),
        Mistake(own[0], FIRST),
        Mistake(no_less(own[0]), FIRST),
        Mistake(own[1], EACH),
        Mistake(no_less(own[1]), EACH),
        Mistake(own[2], ONCE),
        Mistake(no_less(own[2]), ONCE),
        Mistake(own[3], ONCE),
        Mistake(no_less(own[3]), ONCE),
        Mistake(breakdown(spans, steps, ("compute", "data", "communication")), FIRST),
        Mistake(breakdown(spans, steps, ("communication", "compute", "data")), COMPUTES),
        Mistake(breakdown(spans, steps, ("data", "compute", "communication")), COMPUTES),
        Mistake(breakdown(spans, steps, KINDS, covered_by_last_end), LAST),
        Mistake(breakdown(as_label, steps), "A label is no work: leave spans of other kinds out."),
        Mistake(idles, "Where the rank waits for data, that is `data`, not idle."),
    ]


CLOCK = "The clock may begin anywhere, also far below 0: count from `float('-inf')` on."
SORT = "The spans come in no order: sort the intervals before you unite them."
BORDER = (
    "A span may begin in one step and end in another: each step has the part that lies in it. Cut to the "
    "step before you count."
)
DROPPED = (
    "A span that crosses the border of a step is left out here. Each step has the part that lies in it: "
    "cut it, and leave out only what lies wholly outside."
)
AROUND = (
    "A span may begin before a step and end after it: then the whole step lies in it. What has a part in the "
    "step is what begins before its end and ends after its beginning."
)


def begin_there(spans: list[Span], begin: float, end: float) -> list[Span]:
    return [span for span in spans if begin <= span[1] < end]


def end_there(spans: list[Span], begin: float, end: float) -> list[Span]:
    return [span for span in spans if begin < span[2] <= end]


def all_there(spans: list[Span], begin: float, end: float) -> list[Span]:
    return [span for span in spans if begin <= span[1] and span[2] <= end]


def an_end_there(spans: list[Span], begin: float, end: float) -> list[Span]:
    ends = [span for span in spans if begin <= span[1] < end or begin < span[2] <= end]
    return cut(ends, begin, end)


WITHIN = (
    (begin_there, BORDER),
    (end_there, BORDER),
    (all_there, DROPPED),
    (lambda spans, *step: cut(begin_there(spans, *step), *step), DROPPED),
    (lambda spans, *step: cut(end_there(spans, *step), *step), DROPPED),
    (an_end_there, AROUND),
)
FIRST = "Data that is read while the rank computes or communicates costs nothing: `data` is what it adds."
EACH = "Each moment belongs to one part: `exposed` is communication that no computation hides."
ONCE = "Spans of one kind nest and overlap: unite them before you add up."
COMPUTES = (
    "A moment in which the rank computes is `compute`, whatever else runs: ask for that first."
)
LAST = "A span may lie within one that began earlier: keep the latest end so far."

EXERCISE = Exercise(case, failed=(NOTHING,), kind=Kind.LOCAL, sizes=(1,))
