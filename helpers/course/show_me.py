"""`show_me(fn)`: show the reference solution next to the learner's answer, with the ranks of both.

It is intended for learners who have passed the exercise or want to see its solution. The call is recorded in
the progress file, like the last hint. If this copy of the course has no solutions, a message explains this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.answers.build import Answer, cell_number
from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.check import check
from helpers.checks.check_answer import grade
from helpers.checks.headings import Heading, find_heading
from helpers.checks.registry import get
from helpers.course.notebook_file import read_notebook
from helpers.course.page import render_page
from helpers.course.progress import read_progress, record_hint
from helpers.course.show_message import LearnerMessage
from helpers.course.workspace import find_workspace
from helpers.ranks.cells import ipython
from helpers.ranks.run import Run
from helpers.views.timeline import timeline

_MARKS_PATTERN = re.compile(r"^[ \t]*### (BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)


@dataclass(frozen=True, repr=False)
class SideBySide:
    """Two answers to one exercise, each with the run of its check if the answer ran on ranks."""

    title: str
    own: str
    reference: str
    own_run: Run | None
    reference_run: Run | None

    def __repr__(self) -> str:
        parts = [self.title, "", "yours:", self.own, "", "the reference:", self.reference]
        runs = [("yours", self.own_run), ("the reference", self.reference_run)]
        parts += [f"\n{whose}: {timeline(run).text}" for whose, run in runs if run is not None]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        own = "Yours", self.own, _draw_run(self.own_run)
        reference = "Reference", self.reference, _draw_run(self.reference_run)
        return render_page("side_by_side.html", title=self.title, sides=(own, reference))


def show_me(exercise: Any) -> SideBySide | LearnerMessage:
    """Check the reference solution of an exercise and the answer of this notebook, and show both.

    exercise: the exercise's function, its name or its number ("2.1"). Raises UnknownExercise.
    """
    found = find_heading(exercise)
    solved = find_workspace().solutions / f"{found.notebook}.ipynb"
    reference = _source_in(solved, found.name)
    if reference is None:
        return LearnerMessage(
            "This copy of the course has no solutions. Your instructor has the solution to "
            f"{found.number} {found.title}. `hint({found.name!r})` gives the next hint."
        )
    if not read_progress().has_passed(found.name):
        record_hint(found.name, len(found.hints) + 1)
    own = check(found.name)
    return SideBySide(
        f"{found.number} {found.title}",
        _own_source(found.name) or "nothing yet",
        reference,
        own.run,
        _check_answers(found, solved),
    )


def _source_in(solved: Path, name: str) -> str | None:
    """Return the cell of a solved notebook that defines the answer, without its markers."""
    if not solved.is_file():
        return None
    sources = [
        "".join(c["source"]) for c in read_notebook(solved)["cells"] if c["cell_type"] == "code"
    ]
    return _defining_source(sources, name)


def _own_source(name: str) -> str | None:
    shell = ipython()
    return (
        _defining_source(shell.history_manager.input_hist_raw, name) if shell is not None else None
    )


def _defining_source(sources: list[str], name: str) -> str | None:
    defines = re.compile(rf"^(async def|def|class) {re.escape(name)}\b", re.MULTILINE)
    for source in reversed(sources):
        if defines.search(source):
            return _MARKS_PATTERN.sub("", source).strip()
    return None


def _check_answers(heading: Heading, solved: Path) -> Run | None:
    try:
        answer = read_answers(solved, [heading.name])[heading.name]
    except UnreadableNotebook:
        return None
    if not isinstance(answer, Answer):
        return None
    return grade(get(heading.name), answer, cell_number).run


def _draw_run(run: Run | None) -> str:
    return "" if run is None else timeline(run).html()
