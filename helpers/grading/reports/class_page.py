"""Create the instructor's page: standings, hard exercises, learners in need of help, places to check.

`write_reports` calls `class_page` once. Flags are places to check, but not verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from helpers.checks.limits import RESOURCE_OUTCOMES
from helpers.grading.points.changes import Change
from helpers.grading.points.counted import is_bonus
from helpers.grading.record import Record, Status
from helpers.grading.reports.copies import join_first_names
from helpers.grading.reports.mistakes import frequent_mistakes, pass_rates
from helpers.grading.reports.outcomes import Kind, is_fault, kind_of, shown_outcome
from helpers.grading.reports.pages import render
from helpers.grading.reports.standing import Course, Standing, versions_of
from helpers.grading.reports.text import clip_text, line, numbered_title, points_text
from helpers.grading.roster import RosterMatch
from helpers.torch_versions import untested
from helpers.views.plain import plural

STUCK_BELOW = 0.4
NEEDS_ATTENTION = "Needs your attention"
BINS = 10

_LIMITS = {outcome.value for outcome in RESOURCE_OUTCOMES}

# A place to check: a short name, the learner, the place, and the reason.
PlaceToLook = tuple[str, Standing, str, str]


def class_page(
    course: Course, match: RosterMatch | None = None, changes: Sequence[Change] = ()
) -> bytes:
    """Return the class's page as HTML in UTF-8."""
    shares = [each.share for each in course.standings]
    records = [record for each in course.standings for record in each.records]
    torches = {record.versions["torch"] for record in records if "torch" in record.versions}
    return render(
        "class.html",
        course=course,
        notebooks=_short_names(course),
        median=median(shares) if shares else None,
        counts=histogram(shares),
        all_passed=sum(_has_passed_all(each) for each in course.standings),
        hardest=pass_rates(course),
        mistakes=frequent_mistakes(course),
        stuck=stuck_learners(course),
        stuck_below=STUCK_BELOW,
        looks=list(places_to_look(course)),
        needs_attention=NEEDS_ATTENTION,
        match=match,
        changes=changes[::-1],
        known={each.learner: each for each in course.standings},
        protection=list(dict.fromkeys(record.protection for record in records)),
        versions=list(dict.fromkeys(versions_of(record) for record in records)),
        unsure=sorted(filter(None, map(untested, torches))),
    )


def histogram(shares: Sequence[float]) -> list[int]:
    """Return the number of shares from 0 to 1 in each of ten bins. The last bin includes 100 %.

    The bins are drawn by the template instead of matplotlib, so that they use the page's colors and no text
    is interpreted as mathtext.
    """
    bins = [min(BINS - 1, int(BINS * share + 1e-9)) for share in shares]
    return [bins.count(each) for each in range(BINS)]


def stuck_learners(course: Course) -> list[tuple[Standing, str]]:
    """Return the learners who need help, each with the reason, starting with the fewest points."""
    common = _common_exercises(course)
    found = [(each, _why_stuck(each, common)) for each in course.standings]
    return sorted(((s, why) for s, why in found if why), key=lambda pair: pair[0].share)


def _common_exercises(course: Course) -> dict[tuple[str, str], float] | None:
    """Return the exercises that at least a quarter of the learners attempted, with their points.

    Return None if these are all exercises, or if no learner has attempted any. Many classes assign only some
    exercises of a notebook.
    """
    worth: dict[tuple[str, str], float] = {}
    hands: dict[tuple[str, str], set[str]] = {}
    for standing in course.standings:
        for record in standing.records:
            for each in record.exercises:
                key = (record.notebook, each.name)
                worth[key] = max(worth.get(key, 0.0), 0.0 if is_bonus(each) else each.out_of)
                if kind_of(each.outcome) not in (Kind.OPEN, Kind.FAULT):
                    hands.setdefault(key, set()).add(standing.learner)
    learners = len(set().union(*hands.values()))
    least = max(learners / 4, 2 if learners > 2 else 1)
    common = {key: worth[key] for key in worth if len(hands.get(key, ())) >= least}
    return common if common and len(common) < len(worth) and sum(common.values()) else None


def _why_stuck(standing: Standing, common: Mapping[tuple[str, str], float] | None) -> str:
    reasons = []
    exercises, points, out_of = list(standing.exercises), standing.points, standing.out_of
    among = ""
    if common is not None:
        exercises = [
            each
            for record in standing.records
            for each in record.exercises
            if (record.notebook, each.name) in common
        ]
        points, out_of = sum(each.points for each in exercises), sum(common.values())
        among = " in the exercises that others attempted"
    if out_of and points / out_of < STUCK_BELOW:
        reasons.append(points_text(points, out_of) + among)
    not_attempted = sum(kind_of(each.outcome) is Kind.OPEN for each in exercises)
    count = len(exercises)
    if count and 2 * not_attempted >= count:
        reasons.append(f"{not_attempted} of {count} not attempted")
    if standing.unreadable:
        reasons.append(f"{plural(len(standing.unreadable), 'file')} cannot be read")
    # a missing notebook is listed next to other reasons, but is not sufficient as the only reason
    if standing.missing and reasons:
        reasons.append(f"{plural(len(standing.missing), 'notebook')} not handed in")
    return "; ".join(reasons)


def _short_names(course: Course) -> list[tuple[str, str]]:
    """Return each notebook with its column heading, which is only a number if there are many notebooks."""
    names = [(name, line(name)) for name in course.points_by_notebook]
    short = [(name, head.partition("_")[0]) for name, head in names]
    one_each = len({head for _, head in short}) == len(names)
    return short if len(names) > 3 and one_each else names


def _has_passed_all(standing: Standing) -> bool:
    graded = [each for each in standing.exercises if not is_fault(each)]
    return bool(graded) and not standing.missing and standing.count(Kind.PASSED) == len(graded)


def places_to_look(course: Course) -> Iterator[PlaceToLook]:
    for standing in course.standings:
        for record in standing.records:
            for what, where, why in _review_reasons(record):
                yield what, standing, where, clip_text(why, 300)
        strays = [
            line(each.file) for each in standing.spare if each.notebook in course.extra_notebooks
        ]
        if strays:
            why = "Few learners attempted it, or --notebooks does not list it: it earns no points."
            yield "another notebook", standing, join_first_names(strays), why
        for spare in standing.spare:
            if spare.notebook not in course.extra_notebooks:
                why = "The same notebook; the better one counts."
                yield "further copy", standing, line(spare.file), why
        if standing.own:
            files = join_first_names(line(each.file) for each in standing.own)
            yield "the course's own file", standing, files, standing.own_text


def _review_reasons(record: Record) -> Iterator[tuple[str, str, str]]:
    if record.status is Status.UNREADABLE:
        yield "cannot be read", line(record.file), record.message
    for note in record.notes:
        yield "note on the file", line(record.file), note
    for exercise in record.exercises:
        if is_fault(exercise):
            yield "harness fault", numbered_title(exercise), exercise.message
        # a hidden case's limit is not shown, because learners may read a summary of this page
        if exercise.outcome in _LIMITS and shown_outcome(exercise) == exercise.outcome:
            yield exercise.outcome, numbered_title(exercise), exercise.message
        for flag in exercise.review_reasons:
            yield "flag", numbered_title(exercise), flag
    if record.status is Status.HARNESS_FAULT and not any(map(is_fault, record.exercises)):
        yield "harness fault", line(record.file), record.message
