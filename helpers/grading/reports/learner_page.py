"""One learner's page: what became of each exercise, and where to look first.

`write_reports` calls `learner_page` for each `Standing`. Of hidden cases it tells how many
passed; flags are the instructor's and are not told here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from helpers.grading.points.policy import described
from helpers.grading.record import CaseRecord, ExerciseRecord
from helpers.grading.reports.outcomes import (
    FAULT_SAYS,
    MOST_CASES,
    Kind,
    hidden_text,
    kind_of,
    told_outcome,
    visible,
)
from helpers.grading.reports.pages import checked_png, render
from helpers.grading.reports.standing import (
    Course,
    Lateness,
    Standing,
    graded_points,
    points_to_reach,
)
from helpers.grading.reports.text import line, percent
from helpers.views.plain import plural

_MOST_ROWS = 8
# Cases of an exercise that are not folded away.
SHOWN_CASES = 3


def learner_page(course: Course, standing: Standing) -> bytes:
    """Return one learner's page as HTML in UTF-8."""
    return render(
        "learner.html",
        title=course.title,
        standing=standing,
        summary=summary_of(standing, told_outcome),
        several=len(standing.records) + len(standing.missing) > 1,
        fault_says=FAULT_SAYS,
        graded_points=graded_points,
        out_of=points_to_reach,
        outcome_of=told_outcome,
        late_text=late_text,
        policy_says=described(course.policy),
        counted=counted,
        hidden_text=hidden_text,
        looks=looks,
        rows=rows,
        failed_first=failed_first,
        shown_cases=SHOWN_CASES,
        checked_png=checked_png,
    )


def summary_of(
    standing: Standing, outcome: Callable[[ExerciseRecord], str] = lambda each: each.outcome
) -> str:
    """Tell in a line what became of a learner's exercises: `7 of 10 exercises passed, ...`.

    outcome: what is shown of each; for the learner's own eyes `told_outcome`.
    """
    counts = Counter(map(outcome, standing.exercises))
    if not counts:
        return "nothing was graded"
    passed = standing.count(Kind.PASSED)
    rest = [
        f"{count} {line(name, 40)}"
        for name, count in counts.items()
        if kind_of(name) is not Kind.PASSED
    ]
    return ", ".join([f"{passed} of {plural(sum(counts.values()), 'exercise')} passed", *rest])


def late_text(late: Lateness) -> str:
    """Say by how much a notebook is late, and what that costs."""
    free = f", of which {late.free} free" if late.free else ""
    return f"{plural(late.days, 'day')} late{free}: {percent(late.factor)} of its points count."


def counted(exercise: ExerciseRecord) -> str:
    """Tell how many cases there were: `3 visible cases and 3 hidden`."""
    hidden = sum(case.hidden for case in exercise.cases)
    visible = plural(len(exercise.cases) - hidden, "visible case")
    return f"{visible} and {hidden} hidden" if hidden else visible


def failed_first(exercise: ExerciseRecord) -> list[CaseRecord]:
    """Return the visible cases, those first that did not pass."""
    return sorted(visible(exercise.cases), key=lambda case: kind_of(case.outcome) is Kind.PASSED)


def looks(exercise: ExerciseRecord) -> Iterator[CaseRecord]:
    """Return the visible cases that failed and have something to say: each thing once."""
    seen: set[tuple[str, tuple[str, ...], str]] = set()
    for case in exercise.cases[:MOST_CASES]:
        said = (case.message, case.broken, case.advice)
        if case.hidden or kind_of(case.outcome) is Kind.PASSED or said in seen:
            continue
        if any(said) or (not seen and any(row[4] for row in case.rows)):
            yield case
        seen.add(said)


def rows(case: CaseRecord) -> tuple[tuple[tuple[int, str, str, str, str], ...], int]:
    """Return the ranks to show, those that are wrong where there are many; and how many more are wrong."""
    wrong = tuple(row for row in case.rows if row[4])
    if len(case.rows) <= _MOST_ROWS:
        return (case.rows if wrong else ()), 0
    return wrong[:_MOST_ROWS], max(0, len(wrong) - _MOST_ROWS)
