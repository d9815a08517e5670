"""The instructor's page: how the class stands, what it finds hard, who is stuck, where to look.

`write_reports` calls `class_page` once. What it flags are places to look at, none is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from helpers.grading.points.changes import Change
from helpers.grading.points.policy import described
from helpers.grading.record import Record, Status
from helpers.grading.reports.copies import enumerated
from helpers.grading.reports.learner_page import summary_of
from helpers.grading.reports.mistakes import commonest, hardest
from helpers.grading.reports.outcomes import Kind, is_fault, override_text
from helpers.grading.reports.pages import render
from helpers.grading.reports.standing import Course, Standing, graded_points, versions_of
from helpers.grading.reports.text import line, number, numbered, percent, shown
from helpers.grading.roster import RosterMatch
from helpers.views.plain import plural

STUCK_BELOW = 0.4
_MOST_MISTAKES = 25
_MOST_LOOKS = 300
_MOST_CHANGES = 100
# Notebooks that fit next to each other; beyond that the matrix shows them.
_MOST_COLUMNS = 8
BINS = 10
WIDTH, HEIGHT = 640, 190
_LEFT, _TOP, _GROUND = 34, 22, 150


@dataclass(frozen=True)
class Look:
    """Something that a person should look at, with whom it concerns (None: nobody in particular)."""

    what: str
    standings: tuple[Standing, ...]
    where: str
    said: str


def class_page(
    course: Course,
    match: RosterMatch | None = None,
    changes: Sequence[Change] = (),
) -> bytes:
    """Return the class's page as HTML in UTF-8."""
    standings = course.standings
    shares = [each.share for each in standings]
    looks = list(_looks(course))
    mistakes = commonest(course)
    known = {each.learner: each for each in standings}
    return render(
        "class.html",
        title=line(course.title),
        course=course,
        notebooks=_short_names(course),
        most_columns=_MOST_COLUMNS,
        out_of=sum(course.notebooks.values()),
        median_share=percent(median(shares)) if shares else "-",
        all_passed=sum(_passed_all(each) for each in standings),
        chart=histogram(shares),
        hardest=hardest(course),
        mistakes=mistakes[:_MOST_MISTAKES],
        more_mistakes=max(0, len(mistakes) - _MOST_MISTAKES),
        stuck=stuck(course),
        stuck_below=percent(STUCK_BELOW),
        looks=looks[:_MOST_LOOKS],
        more_looks=max(0, len(looks) - _MOST_LOOKS),
        match=match,
        changes=[(each, known.get(each.learner)) for each in changes[::-1][:_MOST_CHANGES]],
        overrides=[(s, t) for s in standings for x in s.exercises if (t := override_text(x))],
        more_changes=max(0, len(changes) - _MOST_CHANGES),
        summary_of=summary_of,
        points_in=_points_in,
        protection=tuple(
            {record.protection: None for each in standings for record in each.records}
        ),
        versions=_versions(course),
        policy_says=described(course.policy),
    )


def stuck(course: Course) -> tuple[tuple[Standing, str], ...]:
    """Return the learners who need somebody, and why; those with the fewest points first."""
    found = [(each, _why_stuck(each)) for each in course.standings]
    return tuple(sorted(((s, why) for s, why in found if why), key=lambda pair: pair[0].share))


def _why_stuck(standing: Standing) -> str:
    reasons = []
    if standing.out_of and standing.share < STUCK_BELOW:
        reasons.append(f"{number(standing.points)} of {number(standing.out_of)} points")
    not_attempted, count = standing.count(Kind.OPEN), len(standing.exercises)
    if count and 2 * not_attempted >= count:
        reasons.append(f"{not_attempted} of {count} not attempted")
    if standing.unreadable:
        reasons.append(f"{plural(len(standing.unreadable), 'file')} cannot be read")
    if standing.missing:
        reasons.append(f"{plural(len(standing.missing), 'notebook')} not handed in")
    # a notebook that is not here yet is listed with other reasons, and is none on its own
    return "; ".join(reasons) if reasons[: -1 if standing.missing else None] else ""


def _short_names(course: Course) -> list[tuple[str, str]]:
    """Return each notebook with the head of its column: of many notebooks the leading numbers."""
    names = [(name, line(name)) for name in course.notebooks]
    short = [(name, head.partition("_")[0]) for name, head in names]
    one_each = len({head for _, head in short}) == len(names)
    return short if len(names) > 3 and one_each else names


def _points_in(standing: Standing, notebook: str) -> str:
    record = standing.record_of(notebook)
    return "-" if record is None else number(graded_points(record))


def _passed_all(standing: Standing) -> bool:
    graded = [each for each in standing.exercises if not is_fault(each)]
    return bool(graded) and not standing.missing and standing.count(Kind.PASSED) == len(graded)


def _looks(course: Course) -> Iterator[Look]:
    for standing in course.standings:
        for record in standing.records:
            yield from _looks_of(standing, record)
        strays = [line(each.file) for each in standing.spare if each.notebook in course.stray]
        if strays:
            why = "Few learners attempted it, or --notebooks does not name it: it gives no points."
            yield Look("another notebook", (standing,), enumerated(strays), why)
        for spare in standing.spare:
            if spare.notebook not in course.stray:
                why = "The same notebook; the better one counts."
                yield Look("further copy", (standing,), line(spare.file), why)
        if standing.own:
            files = enumerated(line(each.file) for each in standing.own)
            yield Look("the course's own file", (standing,), files, standing.own_text)


def _looks_of(standing: Standing, record: Record) -> Iterator[Look]:
    one = (standing,)
    if record.status is Status.UNREADABLE:
        yield Look("cannot be read", one, line(record.file), shown(record.message, 300))
    for note in record.notes:
        yield Look("several files or notebooks", one, line(record.file), shown(note, 300))
    for exercise in record.exercises:
        if is_fault(exercise):
            yield Look("harness fault", one, numbered(exercise), shown(exercise.message, 300))
        for flag in exercise.looks:
            yield Look("flag", one, numbered(exercise), shown(flag, 300))
    if record.status is Status.HARNESS_FAULT and not any(map(is_fault, record.exercises)):
        yield Look("harness fault", one, line(record.file), shown(record.message, 300))


def _versions(course: Course) -> tuple[tuple[tuple[str, str], ...], ...]:
    found = (versions_of(record) for each in course.standings for record in each.records)
    return tuple(dict.fromkeys(found))


# --- the distribution of totals ---------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One bar, in the drawing's units, with its count and the range of shares that it covers."""

    x: float
    y: float
    width: float
    height: float
    count: int
    label: str


@dataclass(frozen=True)
class Histogram:
    """A drawing of WIDTH x HEIGHT; `middle` is where the median stands, `text` what it shows."""

    bars: tuple[Bar, ...]
    ground: int
    left: int
    width: int
    height: int
    middle: float
    text: str


def histogram(shares: Sequence[float]) -> Histogram | None:
    """Count shares from 0 to 1 in ten bins, the last with 100 % in it. None for an empty class.

    The template draws it, not matplotlib: it follows the page's colors, and no text in it is ever mathtext.
    """
    if not shares:
        return None
    counts = [0] * BINS
    for share in shares:
        counts[min(BINS - 1, int(BINS * share + 1e-9))] += 1
    step = (WIDTH - _LEFT) / BINS
    scale = (_GROUND - _TOP) / max(counts)
    bars = tuple(
        Bar(
            x=round(_LEFT + at * step + 2, 1),
            y=round(_GROUND - count * scale, 1),
            width=round(step - 4, 1),
            height=round(count * scale, 1),
            count=count,
            label=f"{at * 10}-{at * 10 + 10}",
        )
        for at, count in enumerate(counts)
    )
    half = median(shares)
    told = ", ".join(f"{bar.label} %: {bar.count}" for bar in bars if bar.count)
    text = f"Learners by share of the points. {told}. The median is {100 * half:.0f} %."
    middle = round(_LEFT + half * (WIDTH - _LEFT), 1)
    return Histogram(bars, _GROUND, _LEFT, WIDTH, HEIGHT, middle, text)
