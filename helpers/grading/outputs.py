"""Write all results of grading a class: points, reports, answers, changed grades."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from helpers.checks.headings import headings
from helpers.grading.batch import record_paths
from helpers.grading.cache import write_atomically
from helpers.grading.grade_options import Setting
from helpers.grading.group_work import copy_for_members
from helpers.grading.inputs import Inputs
from helpers.grading.jplag_files import reference_answers, write_answers
from helpers.grading.people import People
from helpers.grading.platforms import IMPORT_FILES, PLATFORMS
from helpers.grading.points.changes import FILE as GRADES
from helpers.grading.points.changes import (
    Change,
    Grades,
    as_json,
    changes_between,
    grades_of,
    read_grades,
)
from helpers.grading.points.policy import Policy
from helpers.grading.record import Record
from helpers.grading.reference_health import solutions_folder
from helpers.grading.reports import github_annotations, write_reports
from helpers.grading.reports.copies import join_first_names
from helpers.grading.reports.standing import Course, course_of
from helpers.grading.stale_results import remove_withdrawn
from helpers.views.plain import plural

_DAY_S, _YEAR_S = 24 * 60 * 60.0, 365 * 24 * 60 * 60.0


@dataclass(frozen=True)
class Outputs:
    """The written files, and the lines to print. moved: grades that have changed since the previous run."""

    course: Course
    moved: tuple[Change, ...]
    lines: tuple[str, ...]
    annotations: tuple[str, ...]


def write_outputs(records: Sequence[Record], inputs: Inputs, setting: Setting) -> Outputs:
    """Write the reports and answers of a class. Remove results of files that no longer exist."""
    lines = []
    kept = record_paths(inputs.jobs, setting.out).values()
    if gone := remove_withdrawn(setting.out / "records", kept):
        words = "removed the results of files that are no longer among the submissions"
        lines.append(f"Note: {', '.join(gone)}: {words}.")
    people, course = inputs.people, _build_course(records, inputs, setting)
    counted = [record for standing in course.standings for record in standing.records]
    write_answers(counted, setting.out)
    before, grades = read_grades(setting.out), grades_of(course)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    moved = tuple(changes_between(before.grades, grades, now, course))
    changes = (*before.changes, *moved)
    platforms = [setting.out / name for name in IMPORT_FILES]
    earlier = [path for path in platforms if path.exists()]
    written = write_reports(course, setting.out, people.match, changes)
    # Write this file last: if it exists, all others are complete. An autograder's script relies on this
    # order.
    write_atomically(setting.out / GRADES, as_json(Grades(grades, changes)))
    for path in earlier:
        if not path.exists():
            words = "removed, because it contained an earlier run's points, and this run does not write it"
            lines.append(f"Note: {path}: {words}.")
    if people.match and not any(path in written for path in platforms):
        words = (
            f"has none of the columns from which {' or '.join(IMPORT_FILES)} is written. If it "
            f"comes from "
            f"{' or '.join(each.title for each in PLATFORMS if each.import_file)}, set the platform's "
            "language to English and export it again"
        )
        lines.append(f"Note: {people.match.roster.file} {words}.")
    if moved:
        lines.append(
            f"{plural(len(moved), 'grade')} moved; {setting.out / 'changes.csv'} says why."
        )
    lines += _course_notes(course, bool(inputs.notebooks))
    # do not print the path of every learner's page
    lines += [f"Wrote {path}" for path in written if path.parent == setting.out]
    lines += _override_notes(course, people)
    annotations = github_annotations(counted, str(setting.folder)) if setting.github else ()
    return Outputs(course, moved, tuple(lines), tuple(annotations))


def _build_course(records: Sequence[Record], inputs: Inputs, setting: Setting) -> Course:
    people = inputs.people
    records = copy_for_members(records, people.groups)
    tried = {each.name for record in records for each in record.exercises}
    of_class = {known.notebook for name, known in headings().items() if name in tried}
    # Read file times only if there are deadlines.
    times = {job.file: job.path.lstat().st_mtime for job in inputs.jobs if people.policy.deadlines}
    doubts = {file: why for file, at in times.items() if (why := _time_doubt(at, people.policy))}
    times = {file: at for file, at in times.items() if file not in doubts}
    records = [
        replace(each, notes=(*each.notes, doubts[each.file])) if each.file in doubts else each
        for each in records
    ]
    return course_of(
        records,
        setting.title or setting.folder.resolve().name,
        inputs.notebooks,
        people.policy,
        people.overrides,
        {(each.learner, each.file): times[each.file] for each in records if each.file in times},
        reference_answers(of_class, solutions_folder()),
        people.members,
    )


def _time_doubt(time_s: float, policy: Policy) -> str:
    """Return a reason why `time_s` (since the epoch) cannot be a file's time of submission, or ""."""
    first = min(due.timestamp() for due in policy.deadlines.values())
    if time_s > time.time() + _DAY_S:
        why = "is in the future"
    elif time_s < first - _YEAR_S:
        why = "is more than a year before the first deadline"
    else:
        return ""
    written = time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s))
    return f"The time of this file, {written}, {why}. It counts as handed in on time."


def _course_notes(course: Course, are_named: bool) -> Iterator[str]:
    """Yield a line for each notebook that unexpectedly counts or does not count."""
    if course.extra_notebooks:
        why = "--notebooks does not list them" if are_named else "few learners attempted them"
        names = join_first_names(course.extra_notebooks)
        words = f"Answers in these notebooks earn no points, because {why}: {names}"
        yield f"Note: {words}."
    for name in course.rare:
        words = (
            "counts, although most learners have not handed it in: to change this, use --notebooks"
        )
        yield f"Note: {name} {words}."
    for standing in course.standings:
        if standing.own:
            yield f"Note: {standing.learner}: {standing.own_text}"


def _override_notes(course: Course, people: People) -> Iterator[str]:
    """Yield a line for each override that adds no points, or more than its exercise is worth."""
    worth = {
        (standing.learner, each.name): each.out_of
        for standing in course.standings
        for each in standing.exercises
    }
    for override in people.overrides:
        what = f"Note: {override.learner}, {override.exercise}"
        if headings()[override.exercise].notebook not in course.points_by_notebook:
            yield f"{what}: its notebook is not the class's, so the override adds no points."
        elif override.points > (out_of := worth[override.learner, override.exercise]):
            yield (
                f"{what}: the override gives {override.points:g} points, but the exercise is worth "
                f"{out_of:g}. All of them count."
            )
