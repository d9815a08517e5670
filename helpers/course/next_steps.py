"""Show the next step after an exercise and at the end of a notebook.

The verdict on a check includes the next part of the reader's path. `next_steps("05")`, in the last cell of a
notebook, shows its finished exercises and the next stop of each path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape

from helpers.check_result import CheckResult
from helpers.checks.headings import Heading, headings, match_notebook
from helpers.course.home import HOME_FILE, PathProgress, Place, QuizState, home
from helpers.course.paths import is_reference
from helpers.course.workspace import match_cell_ids, matching_cells

_PART_HEADING = r"^## (?:Exercise \d+\.\d+: )?(.+?)(?: \(\d+ min, .*\))?$"
_CHECK_CALL_PATTERN = r"^(?:.*= )?check\((\w+)\)"


@dataclass(frozen=True, repr=False)
class NextSteps:
    """One notebook's exercises and quizzes, with links to their cells, and the next steps.

    cells: {exercise's name: id of its cell}. ways: the paths that contain the notebook.
    """

    place: Place
    exercises: tuple[Heading, ...]
    cells: Mapping[str, str]
    ways: tuple[PathProgress, ...]

    @property
    def _open(self) -> list[tuple[str, list[QuizState]]]:
        """Return the quizzes without a right answer, grouped by the remaining task."""
        states = (("Predictions to make", "open"), ("Predictions to try again", "tried"))
        found = (
            (words, [quiz for quiz in self.place.quizzes if quiz.state == state])
            for words, state in states
        )
        return [(words, quizzes) for words, quizzes in found if quizzes]

    def __repr__(self) -> str:
        lines = [f"{self.place.title}: {self._count()}"]
        lines += [
            f"  {self._sign(heading)[0]} {_describe_heading(heading)}" for heading in self.exercises
        ]
        for words, quizzes in self._open:
            lines.append(f"{words}: {', '.join(quiz.id for quiz in quizzes)}")
        return "\n".join([*lines, *(words for words, _, _ in self._next_lines())])

    def _next_lines(self) -> list[tuple[str, str, str]]:
        """Return, for each path, the line as text, the words before the link, and the link."""
        found = []
        if is_reference(self.place.notebook):
            said = "This notebook is a reference work: it is on none of the short paths."
            found.append((said, said, ""))
        for way in self.ways:
            leg = way.after(self.place.notebook)
            if leg is None:
                said = f"{way.path.title} ends here. {way.path.end}"
                found.append((said, said, ""))
                continue
            said = f"{way.path.title}: next is "
            link = f'<a href="{escape(leg.stop.link)}"><b>{escape(leg.place.title)}</b></a>'
            found.append((f"{said}{leg.place.title}", said, link))
        return found

    def _repr_html_(self) -> str:
        rows = []
        for heading in self.exercises:
            sign, state = self._sign(heading)
            link = self._link(self.cells.get(heading.name, ""), _describe_heading(heading))
            signed = f'<span role="img" aria-label="{state}">{sign}</span>'
            rows.append(f'<li style="list-style: none">{signed} {link}</li>')
        asked = "".join(
            f"<p>{words}: {', '.join(self._link(quiz.cell, quiz.id) for quiz in quizzes)}</p>"
            for words, quizzes in self._open
        )
        onward = "".join(f"<p>{escape(said)}{link}</p>" for _, said, link in self._next_lines())
        return (
            f"<p><b>{self._count()}</b></p>"
            f'<ul style="padding-left: 0">{"".join(rows)}</ul>{asked}{onward}'
            f'<p><a href="{HOME_FILE}">Where you are</a></p>'
        )

    def _count(self) -> str:
        done = sum(heading.name in self.place.done for heading in self.exercises)
        return f"{done} of {len(self.exercises)} exercises passed"

    def _sign(self, heading: Heading) -> tuple[str, str]:
        return ("●", "passed") if heading.name in self.place.done else ("○", "to do")

    def _link(self, cell: str, words: str) -> str:
        if not cell:
            return escape(words)
        return f'<a href="{escape(self.place.file)}#cell-id={escape(cell)}">{escape(words)}</a>'


def next_steps(notebook: str) -> NextSteps:
    """Show a notebook's passed and remaining exercises, and the next steps.

    notebook: its number, such as "05". Raises UnknownExercise if there is no such notebook.
    """
    name = match_notebook(notebook)
    shown = home()
    place = next(place for place in shown.places if place.notebook == name)
    own = [heading for heading in headings().values() if heading.notebook == name]
    ways = (way for way in shown.ways if any(leg.place is place for leg in way.legs))
    return NextSteps(place, tuple(own), matching_cells(name, _CHECK_CALL_PATTERN), tuple(ways))


def _describe_heading(heading: Heading) -> str:
    further = ", further" if heading.further else ""
    return f"{heading.number} {heading.title} ({heading.minutes} min{further})"


def add_next_step(result: CheckResult) -> CheckResult:
    """Add the next step after its exercise to a finished check."""
    next_step, link = next_part(result.name)
    return replace(result, next_step=next_step, link=link)


def next_part(name: str) -> tuple[str, str]:
    """Return the next step after an exercise on the home page's path, and a link to it for JupyterLab.

    The next step is the notebook's next part on the path, whether this part is an exercise or not. If the
    path contains the whole notebook, or if the exercise is not on the path, all parts up to the last exercise
    count. After the last part, the next step is the next notebook or the cell with the next stops.
    """
    heading, shown = headings()[name], home()
    way = shown.ended or shown.way
    notebook, path = heading.notebook, way.path if way else None
    stop = next((stop for stop in path.stops if stop.notebook == notebook), None) if path else None
    is_on_path = stop is not None and name in [exercise.name for exercise in stop.exercises]
    exercises_in_order = [
        exercise for exercise in headings().values() if exercise.notebook == notebook
    ]
    if stop is not None and is_on_path:
        exercises_in_order = list(stop.exercises)
    skipped_titles = {
        exercise.title
        for exercise in headings().values()
        if exercise.notebook == notebook and exercise not in exercises_in_order
    }
    exercises = {exercise.title: exercise for exercise in exercises_in_order}
    parts = [
        (title, cell)
        for title, cell in match_cell_ids(notebook, _PART_HEADING)
        if title not in skipped_titles
    ]
    places = {title: place for place, (title, _) in enumerate(parts)}
    # A copy of the course may lack the notebook, so its parts are unknown.
    parts_below = list(enumerate(parts))[places.get(heading.title, len(parts)) + 1 :]
    on_path = stop.parts if stop is not None else ()
    candidates = [(place, part) for place, part in parts_below if part[0] in on_path]
    if not candidates and not (is_on_path and on_path):
        last_place = max((places.get(title, -1) for title in exercises), default=-1)
        candidates = [(place, part) for place, part in parts_below if place <= last_place]
    for place, (title, cell) in candidates:
        # A section may have the same title as the exercise below it.
        next_exercise = exercises.get(title) if place == places[title] else None
        description = (
            f"Exercise {next_exercise.number}, {next_exercise.title}" if next_exercise else title
        )
        return description, f"{notebook}.ipynb#cell-id={cell}"
    next_leg = way.after(notebook) if way and is_on_path else None
    if next_leg is not None:
        return next_leg.place.title, next_leg.stop.link
    (cell,) = matching_cells(notebook, r"^## (Next)$").values() or ("",)
    end = f"the end of “{path.title}”" if path and is_on_path else "the next notebook of your path"
    return end, f"{notebook}.ipynb#cell-id={cell}" if cell else ""
