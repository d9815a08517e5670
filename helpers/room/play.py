"""Run a known mistake and write a page that shows it.

    python -m helpers.room.play EXERCISE TITLE FILE

The mistake runs in a separate process, because the board needs neither torch nor ranks, and must continue
serving meanwhile.
"""

from __future__ import annotations

import sys
from pathlib import Path

from helpers.answers.data import Answer, Origin
from helpers.checks.check_answer import grade
from helpers.checks.mistakes import known_mistakes
from helpers.checks.registry import get
from helpers.ranks.launcher import disconnect
from helpers.room.pages import render_page
from helpers.views.timeline import timeline
from helpers.views.verdict import verdict_html


def render_mistake_page(name: str, title: str) -> str:
    """Check a known mistake like a learner's answer. Return a page with the verdict and the failed run."""
    exercise = get(name)
    mistake = next(each for each in known_mistakes(exercise) if each.title == title)
    try:
        # let the player show the program's lines as if they were in a learner's cell
        lines = (Origin(1, len(mistake.source.splitlines()), 0, 1),)
        answer = Answer(name, mistake.source, lines)
        result = grade(exercise, answer, _cell_name, every_case=False, record_values=True)
        run = result.run
        live = timeline(run).live if run is not None and len(run.trace) else None
        return render_page("play.html", verdict=verdict_html(result), player=live() if live else "")
    finally:
        disconnect()  # otherwise the rank server would run until this process exits


def _cell_name(cell: int) -> str:
    return "the mistake"


if __name__ == "__main__":
    name, title, file = sys.argv[1:]
    Path(file).write_text(render_mistake_page(name, title), encoding="utf-8")
