"""Report on a class: pages, gradebooks, and files for other systems.

`course grade` calls `write_reports`.

    Record, ... --standing--> Course --+--> pages, class_page             learners/*.html, class.html
                                       +--> gradebooks (and a Roster)     gradebook.csv, one to import
                                       +--> database                      records.sqlite
                                       +--> junit, github                 junit.xml, summary.md

All of these are pure functions from records to bytes; only `write_reports` writes files. Any text in a record
may be hostile, so the module `text` cleans it, and each format escapes it in a different way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from helpers.grading.cache import reporting_write_errors, write_atomically
from helpers.grading.grade_options import CannotGrade
from helpers.grading.platforms import IMPORT_FILES, PLATFORMS
from helpers.grading.points.changes import Change
from helpers.grading.reports.class_page import class_page
from helpers.grading.reports.database import database
from helpers.grading.reports.github import class_summary, github_annotations
from helpers.grading.reports.gradebooks import changes_csv, gradebook, platform_import
from helpers.grading.reports.junit import junit
from helpers.grading.reports.pages import learner_page
from helpers.grading.reports.slugs import is_page_name
from helpers.grading.reports.standing import Course
from helpers.grading.roster import RosterMatch

__all__ = [
    "github_annotations",
    "write_reports",
]


def write_reports(
    course: Course,
    out: Path,
    match: RosterMatch | None = None,
    changes: Sequence[Change] = (),
) -> list[Path]:
    """Write every report on a class below `out`, each file completely or not at all. Return their paths.

    Pages of learners who have left the class are removed, and so are platform files not written in this run,
    because their points come from an earlier run. A link at a file's path is replaced, never followed.

    Raises:
        CannotGrade: A report cannot be written.
    """
    learners = out / "learners"
    if learners.is_symlink():
        raise CannotGrade(
            f"{learners} is a symbolic link; reports do not follow it. Remove it and try again."
        )
    written = [_write(learners / x.page, learner_page(course, x)) for x in course.standings]
    for old in set(learners.glob("*.html")) - set(written):
        if is_page_name(old.name):
            _remove(old)
    written += [_write(out / name, data) for name, data in _class_reports(course, match, changes)]
    # do not remove an instructor's export that was saved under this name
    roster = Path(match.roster.file).resolve() if match else None
    for path in (out / name for name in IMPORT_FILES):
        if path not in written and path.resolve() != roster:
            _remove(path)
    return written


def _write(path: Path, content: bytes) -> Path:
    write_atomically(path, content)
    with reporting_write_errors(path):
        # make it readable by all teachers who share the folder
        path.chmod(0o644)
    return path


def _remove(path: Path) -> None:
    """Remove a file of an earlier run, if it exists. Raise CannotGrade if it cannot be removed."""
    with reporting_write_errors(path):
        path.unlink(missing_ok=True)


def _class_reports(
    course: Course,
    match: RosterMatch | None,
    changes: Sequence[Change],
) -> Iterator[tuple[str, bytes]]:
    yield "class.html", class_page(course, match, changes)
    if changes:
        yield "changes.csv", changes_csv(changes)
    yield "gradebook.csv", gradebook(course)
    for platform in PLATFORMS:
        if match and (data := platform_import(platform, course, match)):
            yield platform.import_file, data
    yield "records.sqlite", database(course, changes)
    yield "junit.xml", junit(course)
    yield "summary.md", class_summary(course, match)
