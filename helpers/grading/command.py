"""`course grade FOLDER --out OUT`: from a folder of notebooks to records and reports, and an exit code.

0: all was graded. 1: a file could not be read or graded here, somebody who handed in is not on the roster,
or --verify found a difference. 2: nothing could be done; one line says why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from helpers.checks.headings import notebook_called
from helpers.course.workspace import WorkspaceError, find_workspace
from helpers.grading.batch import grade_all, secret_of
from helpers.grading.cache import CannotWrite
from helpers.grading.record import Record, Status
from helpers.grading.release import ReleaseError
from helpers.grading.release import differences as differences_from
from helpers.grading.reports import ReportError, github_annotations, write_reports
from helpers.grading.reports.standing import course_of
from helpers.grading.roster import Roster, RosterError, match_roster, read_roster
from helpers.grading.sandbox.levels import NoSandbox, choose, protection_here
from helpers.grading.sandbox.staged import Staged
from helpers.grading.scheduler import NoScheduler
from helpers.grading.setting import Setting
from helpers.grading.similarity import similar_answers, write_answers
from helpers.grading.submissions import Job, NoSubmissions, find_submissions
from helpers.views.plain import for_log


class CannotGrade(Exception):
    """Nothing could be done. One line: what is wrong, and what to do."""


def grade_folder(
    folder: Path,
    out: Path,
    *,
    sandbox: str = "auto",
    jobs: int | None = None,
    roster: Path | None = None,
    pictures: str = "failed",
    verify: bool = False,
    release: Path | None = None,
    title: str | None = None,
    github: bool = False,
    scheduler: str = "",
    notebooks: str = "",
) -> int:
    """Grade all in `folder`, write records and reports into `out`; give the exit code.

    notebooks: numbers or names of the class's, with spaces between; see `reports.standing.course_of`.

    Raise CannotGrade where nothing can be done.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise CannotGrade(
            f"{out} is inside {folder}, among what was handed in: name another place."
        )
    unknown: list[str] = []
    try:
        found, notices = find_submissions(folder)
        if release is not None:
            notices += differences_from(release, find_workspace())
        named = [notebook_called(name) for name in notebooks.replace(",", " ").split()]
        members = read_roster(roster) if roster is not None else None
        if members is not None:
            match = match_roster(
                members, (job.learner for job in found)
            )  # told now, not afterwards
            unknown = list(match.without_entry)
            notices += [f"{name}: handed in, and not on the roster" for name in unknown]
        _make(out)
        secret = secret_of(out)
    except CannotWrite as error:
        raise CannotGrade(str(error)) from None
    except (NoSubmissions, RosterError, ReleaseError, WorkspaceError, LookupError) as error:
        raise CannotGrade(str(error.args[0])) from None
    except OSError as error:
        raise CannotGrade(f"{out} cannot be written: {error.strerror}.") from None
    for notice in notices:
        click.echo(for_log(f"Note: {notice}"))
    processes = min(jobs or os.cpu_count() or 1, len(found))
    try:
        with Staged() as staged:
            level = choose(sandbox, staged)
            beyond = "; ".join(protection_here(level).does_not_stop)
            click.echo(f"Sandbox: {level}. It does not stop: {beyond}.")
            setting = Setting(
                out,
                level,
                staged,
                secret,
                _solutions(),
                pictures,
                use_cache=not verify,
                scheduler=scheduler,
            )
            if verify:
                return _verify(found, setting, processes)
            records = _graded(found, setting, processes)
    except (NoScheduler, NoSandbox, CannotWrite) as error:
        raise CannotGrade(str(error)) from None
    try:
        counted = _write(records, out, title or folder.resolve().name, members, named)
    except (ReportError, RosterError, CannotWrite) as error:
        raise CannotGrade(str(error)) from None
    for line in github_annotations(counted, str(folder)) if github else ():
        click.echo(line)
    return _told(records) or int(bool(unknown))


def _write(
    records: Sequence[Record],
    out: Path,
    title: str,
    members: Roster | None,
    notebooks: Sequence[str],
) -> list[Record]:
    """Write reports and answers; give the records that count."""
    course = course_of(records, title, notebooks)
    counted = [record for standing in course.standings for record in standing.records]
    write_answers(counted, out)
    similar = similar_answers(counted)
    written = write_reports(
        records, out, title=title, roster=members, similar=similar, notebooks=notebooks
    )
    for name in course.stray:
        words = "is not named by --notebooks" if notebooks else "was handed in by few"
        click.echo(for_log(f"Note: {name} {words}, and counts for nobody."))
    for path in written:
        if path.parent == out:  # not every learner's page
            click.echo(for_log(f"Wrote {path}"))
    return counted


def _make(out: Path) -> None:
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CannotGrade(f"{out} is not a folder: name one for the results.")
    out.mkdir(parents=True, exist_ok=True)


def _solutions() -> Path | None:
    try:
        folder = find_workspace().solutions
    except WorkspaceError:
        return None
    return folder if folder.is_dir() else None


def _graded(found: Sequence[Job], setting: Setting, processes: int) -> list[Record]:
    records: dict[Job, Record] = {}
    with click.progressbar(length=len(found), label="Grading", show_pos=True, show_eta=True) as bar:
        for job, record in grade_all(found, setting, processes):
            records[job] = record
            bar.update(1)
    return [records[job] for job in found]


def _told(records: Sequence[Record]) -> int:
    """Say in a line what became of the batch; give the exit code."""
    counts = {status: sum(r.status is status for r in records) for status in Status}
    kept = sum(exercise.cached for record in records for exercise in record.exercises)
    line = f"{counts[Status.GRADED]} of {len(records)} submissions graded"
    if kept:
        line += f", {kept} exercises as they were kept"
    for status, words in (
        (Status.UNREADABLE, "cannot be read"),
        (Status.HARNESS_FAULT, "met a fault of this machine (no points lost)"),
    ):
        if counts[status]:
            line += f"; {counts[status]} {words}"
    click.echo(line + ".")
    return 0 if counts[Status.GRADED] == len(records) else 1


def _verify(found: Sequence[Job], setting: Setting, processes: int) -> int:
    """Grade all once more, without what was kept, and report each difference."""
    from helpers.grading.batch import read_records

    before = {(record.learner, record.file): record for record in read_records(setting.out)}
    different = 0
    with _aside(setting.out) as out:
        again = replace(setting, out=out, pictures="none")
        for _, record in grade_all(found, again, processes):
            old = before.get((record.learner, record.file))
            for line in differences(old, record):
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


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """Return a folder for the records of a second grading, which goes away."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(dir=out, prefix="verify-") as folder:
        yield Path(folder)
