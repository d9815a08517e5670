"""`next_steps("05")`, the last cell of each notebook: what is done here, what is left, and where to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from helpers.checks.headings import Heading, headings, notebook_called
from helpers.course.home import FILE, Asked, Place, home
from helpers.course.workspace import cells_with

_CHECKED = r"^(?:.*= )?check\((\w+)\)"


@dataclass(frozen=True, repr=False)
class NextSteps:
    """One notebook's exercises and quizzes, with links to their cells. cells: of exercises, by name."""

    place: Place
    exercises: tuple[Heading, ...]
    cells: Mapping[str, str]
    following: Place | None

    @property
    def _open(self) -> list[Asked]:
        return [quiz for quiz in self.place.quizzes if quiz.state != "right"]

    def __repr__(self) -> str:
        lines = [f"{self.place.title}: {self._count()}"]
        lines += [f"  {self._sign(heading)[0]} {_words(heading)}" for heading in self.exercises]
        if self._open:
            lines.append("Predictions to make: " + ", ".join(quiz.id for quiz in self._open))
        lines.append(f"Next: {self.following.title}" if self.following else "This is the last one.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for heading in self.exercises:
            sign, state = self._sign(heading)
            link = self._link(self.cells.get(heading.name, ""), _words(heading))
            signed = f'<span role="img" aria-label="{state}">{sign}</span>'
            rows.append(f'<li style="list-style: none">{signed} {link}</li>')
        asked = ", ".join(self._link(quiz.cell, quiz.id) for quiz in self._open)
        asked = f"<p>Predictions to make: {asked}</p>" if asked else ""
        go = f'<a href="{FILE}">Where you are</a>'
        if self.following:
            title = f"<b>{escape(self.following.title)}</b>"
            go = f'Next: <a href="{escape(self.following.file)}">{title}</a> · {go}'
        return (
            f"<p><b>{self._count()}</b></p>"
            f'<ul style="padding-left: 0">{"".join(rows)}</ul>{asked}<p>{go}</p>'
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
    """Show which exercises of a notebook have passed, which are left, and what comes next.

    notebook: its number, such as "05". Raises UnknownExercise if there is no such notebook.
    """
    name = notebook_called(notebook)
    places = home().places
    index = next(i for i, place in enumerate(places) if place.notebook == name)
    place = places[index]
    own = [heading for heading in headings().values() if heading.notebook == name]
    return NextSteps(
        place,
        tuple(own),
        cells_with(name, _CHECKED),
        places[index + 1] if index + 1 < len(places) else None,
    )


def _words(heading: Heading) -> str:
    further = ", further" if heading.further else ""
    return f"{heading.number} {heading.title} ({heading.minutes} min{further})"
