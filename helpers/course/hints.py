"""`hint("name")`: show the next hint for an exercise, from a nudge to almost the solution.

Notebooks and `course hint` call `hint`. The hints are in the exercises' files; the number of hints already
seen is in the progress file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helpers.checks.headings import Heading, find_heading
from helpers.course.progress import read_progress, record_hint
from helpers.course.show_message import LearnerMessage, to_html
from helpers.course.workspace import find_workspace
from helpers.views.live import require_live, show_controls, show_part
from helpers.views.plain import plural


def hint(asked: Any, *, get: Callable[[Any], Heading] = find_heading) -> LearnerMessage:
    """Return the next hint for an exercise, below the earlier hints.

    asked: the exercise's name, its number ("2.1"), or the function itself.

    The last hint states where to find the solution, except in a learner's bundle. For an unknown name, the
    error is that of `get`.
    """
    found = get(asked)
    exercise = found.name
    progress = read_progress()
    seen = progress.hints.get(exercise, 0)
    level = min(seen + 1, len(found.hints))
    note = record_hint(exercise, level) if level > seen else ""
    lines = [_hint_heading(found, level, seen), *_hint_texts(found, level)]
    if level == len(found.hints):
        lines.append(_solution_text(found))
    told = "\n\n".join([*lines, *filter(None, [progress.note, note])])
    return Hints(told, exercise, get, level < len(found.hints))


@dataclass(frozen=True, repr=False)
class Hints(LearnerMessage):
    """The hints seen so far; a live page has a button for the next hint. more: whether there is one."""

    exercise: str
    get: Callable[[Any], Heading]
    more: bool

    def _ipython_display_(self) -> None:
        require_live()
        show = show_part(_as_data(self))
        if self.more:
            button = next_button(self, lambda told: show(_as_data(told)), lambda: remove())
            remove = show_controls(button, "Run this cell again for the next hint.")


def next_button(
    hints: Hints, show: Callable[[LearnerMessage], None], remove: Callable[[], None]
) -> Any:
    """Return a button that calls `show` with the next hints and, after the last hint, `remove`."""
    import ipywidgets as widgets

    button = widgets.Button(description="Next hint", tooltip="Show the next hint")

    def on_next(_: object) -> None:
        told = hint(hints.exercise, get=hints.get)
        show(told)
        if isinstance(told, Hints) and not told.more:
            remove()

    button.on_click(on_next)
    return button


def _as_data(told: LearnerMessage) -> dict[str, Any]:
    return {"text/html": to_html(told.text), "text/plain": told.text}


def _hint_heading(heading: Heading, level: int, shown: int) -> str:
    about = f"Exercise {heading.number}: {heading.title}"
    if not heading.hints:
        return f"**{about}** has no hints."
    if shown >= level:
        return f"**{about}**: that was the last of {plural(level, 'hint')}."
    return f"**{about}**: hint {level} of {len(heading.hints)}."


def _hint_texts(heading: Heading, level: int) -> list[str]:
    return [
        f"{number}. {text.strip()}" for number, text in enumerate(heading.hints[:level], start=1)
    ]


def _solution_text(heading: Heading) -> str:
    solution = f"{heading.notebook}.ipynb"
    if (find_workspace().solutions / solution).is_file():
        shown = f"`from helpers import show_me; show_me({heading.name!r})`"
        return f"The solution is in solutions/{solution}; {shown} shows it next to yours."
    return "That was the last hint. Your instructor has the solution."
