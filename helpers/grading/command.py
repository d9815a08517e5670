"""`course grade FOLDER --out OUT`: from a folder of notebooks to records and reports, and an exit code.

0: all was graded. 1: a file could not be read or graded here, somebody who handed in is not on the roster,
or --verify found a difference. 2: nothing could be done; one line says why.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from helpers.checks.headings import headings, notebook_called
from helpers.checks.mistakes import own_folder, read_mistakes
from helpers.course.workspace import WorkspaceError, find_workspace
from helpers.grading.answers import reference_answers, write_answers
from helpers.grading.batch import grade_all, graded, record_paths, secret_of
from helpers.grading.cache import write_whole
from helpers.grading.group_work import shared
from helpers.grading.people import People, read_people
from helpers.grading.points.changes import FILE as GRADES
from helpers.grading.points.changes import (
    Change,
    Grades,
    as_json,
    changes_between,
    grades_of,
    read_grades,
)
from helpers.grading.points.counted import weighted
from helpers.grading.points.policy import Policy
from helpers.grading.record import Record, Status, read_records
from helpers.grading.references import solutions_here
from helpers.grading.release import differences as differences_from
from helpers.grading.reports import PLATFORM_FILES, github_annotations, write_reports
from helpers.grading.reports.copies import enumerated
from helpers.grading.reports.standing import (
    Course,
    course_of,
    graded_points,
    points_to_reach,
)
from helpers.grading.sandbox.levels import Plan, choose, protection_here
from helpers.grading.sandbox.staged import Staged
from helpers.grading.sandbox.turns import Turns
from helpers.grading.setting import CannotGrade, Setting
from helpers.grading.submissions import Job, find_submissions
from helpers.grading.withdrawn import remove_withdrawn
from helpers.views.plain import for_log, plural


@dataclass(frozen=True)
class Graded:
    """What became of a folder. course: None where it was only verified."""

    exit_code: int
    course: Course | None = None
    moved: tuple[Change, ...] = ()


def graded_data(graded: Graded) -> dict[str, Any]:
    """Return what `course grade --json` prints: the points that count in the end, of every learner."""
    standings = graded.course.standings if graded.course else ()
    return {
        "exit_code": graded.exit_code,
        "learners": [
            {
                "learner": each.learner,
                "points": each.points,
                "out_of": each.out_of,
                "notebooks": {x.notebook or x.file: graded_points(x) for x in each.records},
                "missing": list(each.missing),
                "dropped": list(each.dropped),
                "unreadable": [x.file for x in each.unreadable],
            }
            for each in standings
        ],
        "moved": msgspec.to_builtins(graded.moved),
    }


def grade_folder(setting: Setting) -> Graded:
    """Grade what was handed in, write records and reports; give the exit code.

    Raise CannotGrade where nothing can be done.
    """
    folder, out = setting.folder, setting.out
    if out.resolve().is_relative_to(folder.resolve()):
        raise CannotGrade(
            f"{out} is inside {folder}, among what was handed in: name another place."
        )
    files = (setting.roster, setting.policy, setting.overrides, setting.groups)
    aside = [path for path in files if path is not None]
    submissions = find_submissions(folder, aside)
    found, notices = submissions.jobs, list(submissions.notices)
    _try_own_mistakes()
    try:
        if setting.release is not None:
            notices += differences_from(setting.release, find_workspace())
        named = [notebook_called(name) for name in setting.notebooks.replace(",", " ").split()]
    except (WorkspaceError, LookupError) as error:
        raise CannotGrade(str(error.args[0])) from None
    people = read_people(setting, submissions.sources)
    notices += people.notices
    secret = _secret(setting)
    for notice in notices:
        click.echo(for_log(f"Note: {notice}"))
    with Staged() as staged:
        level = choose(setting.sandbox, staged)
        beyond = "; ".join(protection_here(level).does_not_stop)
        click.echo(f"Sandbox: {level}. It does not stop: {beyond}.")
        plan = Plan(level, staged, turns=Turns(str(out / ".turns")))
        if setting.verify:
            return Graded(_verify(found, setting, plan, secret))
        records = _with_progress(found, grade_all(found, setting, plan, secret), people.policy)
    if gone := remove_withdrawn(out / "records", record_paths(found, out).values()):
        words = "removed what earlier runs kept of files that are no longer handed in"
        click.echo(for_log(f"Note: {', '.join(gone)}: {words}."))
    course = _course(records, found, people, setting, named)
    counted, moved = _write(course, setting, people, named)
    for notice in _override_notices(course, people):
        click.echo(for_log(f"Note: {notice}"))
    for line in github_annotations(counted, str(folder)) if setting.github else ():
        click.echo(line)
    return Graded(_summary(records) or int(bool(people.unknown)), course, moved)


def _course(
    records: Sequence[Record],
    jobs: Sequence[Job],
    people: People,
    setting: Setting,
    named: Sequence[str],
) -> Course:
    records = shared(records, people.groups)
    tried = {each.name for record in records for each in record.exercises}
    of_class = {known.notebook for name, known in headings().items() if name in tried}
    # A file's time is asked for only if there are deadlines.
    times = {job.file: job.path.lstat().st_mtime for job in jobs if people.policy.deadlines}
    return course_of(
        records,
        setting.title or setting.folder.resolve().name,
        named,
        people.policy,
        people.overrides,
        {(each.learner, each.file): times[each.file] for each in records if each.file in times},
        reference_answers(of_class, solutions_here()),
        people.members,
    )


def _override_notices(course: Course, people: People) -> Iterator[str]:
    """Return a line for each override that gives no points, or more than its exercise is worth."""
    worth = {
        (standing.learner, each.name): each.out_of
        for standing in course.standings
        for each in standing.exercises
    }
    for override in people.overrides:
        what = f"{override.learner}, {override.exercise}"
        if headings()[override.exercise].notebook not in course.notebooks:
            yield f"{what}: its notebook is not the class's, so the override gives no points."
        elif override.points > (out_of := worth[override.learner, override.exercise]):
            yield (
                f"{what}: the override gives {override.points:g} points, but the exercise is worth "
                f"{out_of:g}. All of them count."
            )


def _try_own_mistakes() -> None:
    """Read the instructor's own mistakes once, so that a slip in one is not met in the middle of a class."""
    for path in sorted(own_folder().glob("*.py")):
        try:
            read_mistakes(path.read_text(encoding="utf-8"), str(path))
        except (OSError, ValueError) as error:
            raise CannotGrade(str(error)) from None


def _secret(setting: Setting) -> str:
    out = setting.out
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CannotGrade(f"{out} is not a folder: name one for the results.")
    try:
        # a class's answers and points: on a hub, teacher and learners share a machine
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        return secret_of(out)
    except OSError as error:
        raise CannotGrade(f"{out} cannot be written: {error.strerror}.") from None


def _with_progress(
    jobs: Sequence[Job], results: Iterator[tuple[Job, Record]], policy: Policy
) -> list[Record]:
    """Show how far a batch is: a bar on a terminal, lines in a log. Give records in the jobs' order."""
    records: dict[Job, Record] = {}
    if sys.stdout.isatty():
        with click.progressbar(
            results, len(jobs), "Grading", show_pos=True, show_eta=True
        ) as shown:
            records.update(shown)
    else:
        for count, (job, record) in enumerate(results, 1):
            records[job] = record
            final = weighted(record, policy)
            came = f"{graded_points(final):g} of {points_to_reach(final):g} points"
            said = came if record.status is Status.GRADED else record.status.value
            click.echo(for_log(f"{count} of {len(jobs)}: {job.learner}, {job.file}: {said}"))
    return [records[job] for job in jobs]


def _write(
    course: Course, setting: Setting, people: People, named: Sequence[str]
) -> tuple[list[Record], tuple[Change, ...]]:
    """Write reports and answers; give the records that count, and whose points moved."""
    counted = [record for standing in course.standings for record in standing.records]
    write_answers(counted, setting.out)
    before, grades = read_grades(setting.out), grades_of(course)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    moved = tuple(changes_between(before.grades, grades, now))
    changes = (*before.changes, *moved)
    platforms = [setting.out / name for name in PLATFORM_FILES]
    earlier = [path for path in platforms if path.exists()]
    written = write_reports(course, setting.out, people.match, changes)
    for path in earlier:
        if not path.exists():
            words = "removed, because it held the points of an earlier run and this run does not write it"
            click.echo(for_log(f"Note: {path}: {words}."))
    if people.match and not any(path in written for path in platforms):
        words = (
            f"has none of the columns by which {' or '.join(PLATFORM_FILES)} is written. If it comes from "
            "Canvas or Moodle, set the platform's language to English and export it again"
        )
        click.echo(for_log(f"Note: {people.match.roster.file} {words}."))
    # Last: who finds it knows that all else was written, as `run_autograder` for Gradescope does.
    write_whole(setting.out / GRADES, as_json(Grades(grades, changes)))
    if moved:
        click.echo(f"{plural(len(moved), 'grade')} moved; {setting.out / 'changes.csv'} says why.")
    if course.stray:
        why = "--notebooks does not name them" if named else "few learners attempted them"
        words = (
            f"Answers to these notebooks give no points, because {why}: {enumerated(course.stray)}."
        )
        click.echo(for_log(f"Note: {words}"))
    for name in course.rare:
        words = "counts for everybody, although most have not handed it in: --notebooks says which count"
        click.echo(for_log(f"Note: {name} {words}."))
    for standing in course.standings:
        if standing.own:
            click.echo(for_log(f"Note: {standing.learner}: {standing.own_text}"))
    for path in written:
        if path.parent == setting.out:  # not every learner's page
            click.echo(for_log(f"Wrote {path}"))
    return counted, moved


def _summary(records: Sequence[Record]) -> int:
    """Say in a line what became of the batch; give the exit code."""
    counts = {status: sum(r.status is status for r in records) for status in Status}
    kept = sum(exercise.cached for record in records for exercise in record.exercises)
    line = f"{counts[Status.GRADED]} of {len(records)} submissions graded"
    if kept:
        line += f", {kept:,} of their exercises without a new run because an equal answer was run before"
    for status, words in (
        (Status.UNREADABLE, "cannot be read"),
        (Status.HARNESS_FAULT, "met a fault of this machine (no points lost)"),
    ):
        if counts[status]:
            line += f"; {counts[status]} {words}"
    click.echo(line + ".")
    return 0 if counts[Status.GRADED] == len(records) else 1


def _verify(found: Sequence[Job], setting: Setting, plan: Plan, secret: str) -> int:
    """Grade all once more, without what was kept, and report each difference."""
    before = {(record.learner, record.file): record for record in read_records(setting.out)}
    different = 0
    for _, record in graded(found, setting, plan, secret):
        for line in differences(before.get((record.learner, record.file)), record):
            different += 1
            click.echo(for_log(f"Differs: {record.learner}, {record.file}: {line}"))
    click.echo(f"Graded {len(found)} submissions again: {different} differences.")
    return 1 if different else 0


def differences(old: Record | None, new: Record) -> Iterator[str]:
    """Say where two records of one submission differ in outcome or points."""
    if old is None:
        yield "was not graded before"
        return
    if old.status is not new.status:
        yield f"{old.status.value} before, {new.status.value} now"
    now = {exercise.name: exercise for exercise in new.exercises}
    for exercise in old.exercises:
        other = now.get(exercise.name)
        if other is None:
            yield f"{exercise.name} is missing now"
        elif (exercise.outcome, exercise.points) != (other.outcome, other.points):
            yield (
                f"{exercise.name}: {exercise.outcome}, {exercise.points:g} points before; "
                f"{other.outcome}, {other.points:g} now"
            )
