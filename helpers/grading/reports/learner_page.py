"""One learner's page: what became of each exercise, and where to look first.

`write_reports` calls `learner_page` for each `Standing`. Of hidden cases it tells how many
passed; flags are the instructor's and are not told here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from helpers.grading.record import CaseRecord, ExerciseRecord, Record, Status
from helpers.grading.reports.outcomes import FAULT_SAYS, Kind, is_fault, kind_of, told_outcome
from helpers.grading.reports.pages import render
from helpers.grading.reports.png import checked_png
from helpers.grading.reports.standing import Course, Standing, graded_points, versions_of
from helpers.grading.reports.text import line, numbered, shown, sound
from helpers.grading.reports.told import MOST_CASES, hidden_text, visible
from helpers.views.plain import plural

T = TypeVar("T")

_MOST_ROWS = 8
_CELL = 300


@dataclass(frozen=True)
class CaseView:
    """A visible case as a page shows it."""

    label: str
    outcome: str
    kind: Kind


@dataclass(frozen=True)
class LookView:
    """What a visible case that failed has to say; `more` counts wrong ranks that are not shown."""

    label: str
    rows: tuple[tuple[int, str, str, str, str], ...]
    more: int
    message: str
    broken: tuple[str, ...]
    advice: str


@dataclass(frozen=True)
class ExerciseView:
    """One exercise as a page shows it. hidden: how many hidden cases passed, or ""."""

    anchor: str
    name: str
    title: str
    outcome: str
    kind: Kind
    points: float
    out_of: float
    message: str
    cases: tuple[CaseView, ...]
    counted: str
    hidden: str
    looks: tuple[LookView, ...]
    notes: tuple[str, ...]
    picture: Markup | None
    size: tuple[int, int]


@dataclass(frozen=True)
class NotebookView:
    """One file as a page shows it."""

    title: str
    file: str
    sha256: str
    message: str
    unreadable: bool
    notes: tuple[str, ...]
    points: float
    out_of: float
    exercises: tuple[ExerciseView, ...]


def learner_page(course: Course, standing: Standing) -> bytes:
    """Return one learner's page as HTML in UTF-8."""
    notebooks = tuple(_notebook(place, each) for place, each in enumerate(standing.records, 1))
    return render(
        "learner.html",
        title=line(course.title),
        learner=line(standing.learner),
        standing=standing,
        summary=summary_of(standing, told_outcome),
        notebooks=notebooks,
        several=len(notebooks) + len(standing.missing) > 1,
        spare=[line(each.file) for each in standing.spare],
        missing=[line(name) for name in standing.missing],
        fault_says=FAULT_SAYS,
        failed=Kind.FAILED,
        protection=_unlike(each.protection for each in standing.records),
        versions=_unlike(map(versions_of, standing.records)),
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


def _notebook(place: int, record: Record) -> NotebookView:
    exercises = tuple(
        _exercise(f"e{place}-{at}", each) for at, each in enumerate(record.exercises, 1)
    )
    return NotebookView(
        title=line(record.notebook or record.file),
        file=line(record.file),
        sha256=line(record.sha256, 64) if record.sha256 else "",
        message=shown(record.message),
        unreadable=record.status is Status.UNREADABLE,
        notes=_notes(record.notes),
        points=graded_points(record),
        out_of=sum(sound(each.out_of) for each in record.exercises if not is_fault(each)),
        exercises=exercises,
    )


def _exercise(anchor: str, exercise: ExerciseRecord) -> ExerciseView:
    # what may have seen a hidden case's inputs is not shown where the verdict is not the learner's
    fault = is_fault(exercise)
    picture = None if fault else checked_png(exercise.picture)
    return ExerciseView(
        anchor=anchor,
        name=line(exercise.name),
        title=numbered(exercise),
        outcome=line(told_outcome(exercise), 40),
        kind=kind_of(exercise.outcome),
        points=exercise.points,
        out_of=exercise.out_of,
        message="" if fault else shown(exercise.message),
        cases=() if fault else _cases(exercise.cases),
        counted=_counted(exercise.cases),
        hidden="" if fault else hidden_text(exercise),
        looks=() if fault else _looks(exercise.cases),
        notes=_notes(exercise.notes),
        picture=Markup("data:image/png;base64,{}").format(picture[0]) if picture else None,
        size=picture[1:] if picture else (0, 0),
    )


def _notes(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(shown(note, 400) for note in tuple(notes)[:20])


def _cases(cases: tuple[CaseRecord, ...]) -> tuple[CaseView, ...]:
    return tuple(
        CaseView(line(each.label), line(each.outcome, 40), kind_of(each.outcome))
        for each in visible(cases)
    )


def _counted(cases: tuple[CaseRecord, ...]) -> str:
    """Tell how many cases there were: `3 visible cases and 3 hidden ones`."""
    hidden = sum(case.hidden for case in cases)
    visible = plural(len(cases) - hidden, "visible case")
    return f"{visible} and {hidden} hidden" if hidden else visible


def _looks(cases: tuple[CaseRecord, ...]) -> tuple[LookView, ...]:
    """Return what the visible cases that failed say: the first in full, others where they say else."""
    seen: set[tuple[str, tuple[str, ...], str]] = set()
    looks: list[LookView] = []
    for case in cases[:MOST_CASES]:
        said = (case.message, case.broken, case.advice)
        if case.hidden or kind_of(case.outcome) is Kind.PASSED or said in seen:
            continue
        seen.add(said)
        look = _look(case, with_rows=not looks)
        if look.rows or look.message or look.broken or look.advice:
            looks.append(look)
    return tuple(looks)


def _look(case: CaseRecord, with_rows: bool) -> LookView:
    wrong = [row for row in case.rows if row[4]]
    few = len(case.rows) <= _MOST_ROWS
    rows = ((list(case.rows) if few else wrong[:_MOST_ROWS]) if wrong else []) if with_rows else []
    return LookView(
        label=line(case.label),
        rows=tuple((rank, *(shown(text, _CELL) for text in rest)) for rank, *rest in rows),  # type: ignore[misc]
        more=0 if few or not rows else max(0, len(wrong) - _MOST_ROWS),
        message=shown(case.message),
        broken=tuple(shown(rule, 400) for rule in case.broken[:10]),
        advice=shown(case.advice),
    )


def _unlike(values: Iterable[T]) -> tuple[T, ...]:
    found: list[T] = []
    for value in values:
        if value not in found:
            found.append(value)
    return tuple(found)
