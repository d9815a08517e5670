"""`course watch`: check a notebook's exercises each time it is saved, from a terminal next to JupyterLab.

saved file -> answers -> changed and attempted answers -> checks -> next step
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.data import NO_ATTEMPT
from helpers.answers.reader import UnreadableNotebook
from helpers.checks.check_answer import grade
from helpers.checks.check_notebook import find_answers
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.listeners import tell_listeners
from helpers.course.saves import Saves
from helpers.ranks.launcher import disconnect
from helpers.views.plain import for_log
from helpers.views.verdict import verdict_text


def watch(saves: Saves) -> None:
    """Check each saved notebook until Ctrl-C, printing each verdict and the next exercise."""
    answers: dict[Path, Mapping[str, str]] = {}
    try:
        for path in saves.follow():
            # Reading the answers of all notebooks takes a minute, so each notebook is read at its first save.
            before = (
                answers[path] if path in answers else read_sources(path.name, saves.first.get(path))
            )
            answers[path] = check_changed(path, before)
    except KeyboardInterrupt:
        print()
    finally:
        disconnect()


def read_sources(name: str, content: bytes | None) -> Mapping[str, str]:
    """Return {name: source} of the answers in a notebook's content; {} if there is no content."""
    if content is None:
        return {}
    with tempfile.TemporaryDirectory(prefix="real-ranks-watch-") as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return _sources(_read_answers(path)[1])


def check_changed(path: Path, before: Mapping[str, str]) -> Mapping[str, str]:
    """Check the exercises of a notebook that differ from `before`; return {name: current source}."""
    exercises, found = _read_answers(path)
    now = _sources(found)
    for index, exercise in enumerate(exercises):
        if not now[exercise.name] or now[exercise.name] == before.get(exercise.name):
            continue
        result = grade(exercise, found[exercise.name], cell_number, VISIBLE_SECRET)
        print(f"\n{for_log(verdict_text(result))}", flush=True)
        tell_listeners(result)
        following = next((e for e in exercises[index + 1 :] if not now[e.name]), None)
        if result.passed and following is not None:
            print(f"Next: Exercise {following.number}, {following.title}", flush=True)
    return now


def _read_answers(path: Path) -> tuple[list[Exercise], Mapping[str, Answer | Problem]]:
    try:
        return find_answers(path)
    except (UnreadableNotebook, OSError):  # not a notebook, or still being written
        return [], {}


def _sources(answers: Mapping[str, Answer | Problem]) -> dict[str, str]:
    """Return, for each answer's name, its source, the reason for a missing source, or "" for a stub."""
    return {
        name: answer.source
        if isinstance(answer, Answer)
        else ""
        if answer.kind in NO_ATTEMPT
        else answer.message
        for name, answer in answers.items()
    }
