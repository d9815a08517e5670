"""Run `course grade FOLDER --out OUT`: write records and reports, and return an exit code.

The code is 0 if everything was graded. It is 1 if a file could not be read or graded here, if a learner with
a submission is not on the roster, or if --verify found a difference. It is 2 if nothing could be done. In
this case, one line explains why.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from helpers.grading.batch import find_differences, grade_all
from helpers.grading.grade_options import Setting
from helpers.grading.inputs import read_inputs
from helpers.grading.outputs import write_outputs
from helpers.grading.points.changes import Change
from helpers.grading.points.counted import apply_weights
from helpers.grading.points.policy import Policy
from helpers.grading.record import Record, Status
from helpers.grading.reports.standing import Course, graded_points, max_points
from helpers.grading.reports.text import points_text
from helpers.grading.sandbox.levels import make_plan
from helpers.grading.sandbox.staged import StagedFiles
from helpers.grading.submissions import Job
from helpers.views.plain import for_log, plural


@dataclass(frozen=True)
class FolderResult:
    """The result for a folder. course: None if the folder was only verified."""

    exit_code: int
    course: Course | None = None
    moved: tuple[Change, ...] = ()


def grade_folder(setting: Setting) -> FolderResult:
    """Grade the submissions, and write records and reports.

    Raises:
        CannotGrade: The inputs or the outputs cannot be used.
    """
    inputs = read_inputs(setting)
    _print_lines(f"Note: {notice}" for notice in inputs.notices)
    with StagedFiles() as staged:
        plan = make_plan(setting.sandbox, staged, setting.out)
        _print_lines([f"Sandbox: {plan.level}. It does not stop: {'; '.join(plan.does_not_stop)}."])
        if setting.verify:
            found = _print_lines(find_differences(inputs.jobs, setting, plan, inputs.secret))
            _print_lines(
                [
                    f"Graded {plural(len(inputs.jobs), 'submission')} again: {plural(found, 'difference')}."
                ]
            )
            return FolderResult(int(found > 0))
        # close it at once after an interruption, so that no grader keeps running
        with closing(grade_all(inputs.jobs, setting, plan, inputs.secret)) as results:
            records = _with_progress(inputs.jobs, results, inputs.people.policy)
    outputs = write_outputs(records, inputs, setting)
    _print_lines(outputs.lines)
    for line in outputs.annotations:
        click.echo(line)
    exit_code = _print_summary(records) or int(bool(inputs.people.unknown_learners))
    return FolderResult(exit_code, outputs.course, outputs.moved)


def _print_lines(lines: Iterable[str]) -> int:
    """Print lines after escaping them, because they may come from submissions. Return their number."""
    count = 0
    for line in lines:
        click.echo(for_log(line))
        count += 1
    return count


def _with_progress(
    jobs: Sequence[Job], results: Iterator[tuple[Job, Record]], policy: Policy
) -> list[Record]:
    """Show progress: a bar on a terminal, lines in a log. Return the records in the jobs' order."""
    records: dict[Job, Record] = {}
    if sys.stdout.isatty():
        with click.progressbar(
            results, len(jobs), "Grading", show_pos=True, show_eta=True
        ) as shown:
            records.update(shown)
    else:
        for count, (job, record) in enumerate(results, 1):
            records[job] = record
            final = apply_weights(record, policy)
            came = points_text(graded_points(final), max_points(final))
            said = came if record.status is Status.GRADED else record.status.value
            click.echo(for_log(f"{count} of {len(jobs)}: {job.learner}, {job.file}: {said}"))
    return [records[job] for job in jobs]


def _print_summary(records: Sequence[Record]) -> int:
    """Print a line about the whole batch. Return the exit code."""
    counts = {status: sum(r.status is status for r in records) for status in Status}
    kept = sum(exercise.cached for record in records for exercise in record.exercises)
    line = f"{counts[Status.GRADED]} of {plural(len(records), 'submission')} graded"
    if kept:
        line += (
            f", {kept:,} of their exercises without a new run, because an identical answer "
            "had been run before"
        )
    for status, words in (
        (Status.UNREADABLE, "cannot be read"),
        (Status.HARNESS_FAULT, "failed because of this machine (no points lost)"),
    ):
        if counts[status]:
            line += f"; {counts[status]} {words}"
    click.echo(line + ".")
    return 0 if counts[Status.GRADED] == len(records) else 1


def result_as_data(result: FolderResult) -> dict[str, Any]:
    """Return the data printed by `course grade --json`: every learner's final points."""
    standings = result.course.standings if result.course else ()
    return {
        "exit_code": result.exit_code,
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
        "moved": msgspec.to_builtins(result.moved),
    }
