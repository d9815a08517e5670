"""`course progress --html FILE`: a page about a learner's skills."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helpers.checks.headings import Heading, headings
from helpers.course.home import title_of
from helpers.course.page import render_page
from helpers.course.path_picture import path_picture
from helpers.course.paths import EVERYTHING, LearningPath, paths
from helpers.course.progress import Progress


@dataclass(frozen=True)
class _Finished:
    path: LearningPath
    picture: str


def write_can_do(progress: Progress, file: Path) -> None:
    """Write the page: finished paths with their pictures, and all exercises that have passed."""
    file.write_text(can_do_page(progress), encoding="utf-8")


def can_do_page(progress: Progress) -> str:
    """Return the page as HTML that loads no other files."""
    passed: dict[str, list[Heading]] = {}
    for heading in headings().values():
        if progress.has_passed(heading.name):
            passed.setdefault(heading.notebook, []).append(heading)
    finished = [
        _Finished(path, path_picture(path))
        for path in paths().values()
        if all(progress.has_passed(each.name) for stop in path.stops for each in stop.exercises)
    ]
    # the path through everything contains all other paths
    short = [each for each in finished if each.path.name != EVERYTHING]
    count = sum(map(len, passed.values()))
    days = sorted(
        progress.exercises[each.name].best.when[:10] for own in passed.values() for each in own
    )
    return render_page(
        "can_do.html",
        finished=short if len(short) == len(finished) else finished,
        notebooks={title_of(notebook): own for notebook, own in passed.items()},
        count=count,
        total=len(headings()),
        days=days,
    )
