"""Reports on a class: pages, gradebooks, and what other systems read. `course grade` calls `write_reports`.

    Record, ... --standing--> Course --+--> learner_page, class_page      learners/*.html, class.html
                                       +--> gradebooks (and a Roster)     gradebook.csv, canvas.csv, ...
                                       +--> database                      records.sqlite
                                       +--> junit, github                 junit.xml, summary.md
    Record, ... of one learner ----------> gradescope                     results.json

All are pure functions from records to bytes; `files` alone writes. Every text in a record may be hostile:
`text` cleans it, and each format escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from helpers.grading.points.changes import Change
from helpers.grading.reports.class_page import class_page
from helpers.grading.reports.database import database
from helpers.grading.reports.files import ReportError, open_folder
from helpers.grading.reports.github import github_annotations, summary
from helpers.grading.reports.gradebooks import canvas, changes_csv, gradebook, moodle
from helpers.grading.reports.gradescope import results_json, write_zip
from helpers.grading.reports.junit import junit
from helpers.grading.reports.pages import learner_page
from helpers.grading.reports.standing import Course
from helpers.grading.roster import RosterMatch

__all__ = [
    "PLATFORM_FILES",
    "ReportError",
    "github_annotations",
    "results_json",
    "write_reports",
    "write_zip",
]

_PLATFORMS = {"canvas.csv": canvas, "moodle.csv": moodle}
PLATFORM_FILES = tuple(_PLATFORMS)
"""The files that learning platforms import, of which a run writes those that its roster has columns for."""


def write_reports(
    course: Course,
    out: Path,
    match: RosterMatch | None = None,
    changes: Sequence[Change] = (),
) -> list[Path]:
    """Write every report on a class below `out`, each file whole or not at all. Return their paths.

    Remove the pages of learners who are no longer in the class, and files for a platform that this run does
    not write, because their points are those of an earlier run. Raise ReportError if something cannot be
    written or a symbolic link is in the way.
    """
    written = []
    with open_folder(out) as folder:
        with open_folder(out / "learners", within=folder) as learners:
            for standing in course.standings:
                written.append(learners.write(standing.page, learner_page(course, standing)))
            learners.keep({standing.page for standing in course.standings})
        for name, data in _of_the_class(course, match, changes):
            written.append(folder.write(name, data))
        # an export that the instructor has saved under such a name is not ours to remove
        roster = Path(match.roster.file).resolve() if match else None
        for name in PLATFORM_FILES:
            if out / name not in written and (out / name).resolve() != roster:
                folder.remove(name)
    return written


def _of_the_class(
    course: Course,
    match: RosterMatch | None,
    changes: Sequence[Change],
) -> Iterator[tuple[str, bytes]]:
    yield "class.html", class_page(course, match, changes)
    if changes:
        yield "changes.csv", changes_csv(changes)
    yield "gradebook.csv", gradebook(course)
    for name, platform in _PLATFORMS.items():
        if match and (data := platform(course, match)):
            yield name, data
    yield "records.sqlite", database(course, changes)
    yield "junit.xml", junit(course)
    yield "summary.md", summary(course, match)
