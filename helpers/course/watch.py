"""`course watch`: check a notebook's exercises each time it is saved, from a terminal next to JupyterLab.

saved file -> answers -> those that changed and are attempted -> checks -> what is next
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.data import NO_ATTEMPT
from helpers.answers.reader import UnreadableNotebook
from helpers.checks.check_notebook import find_answers
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.result import Outcome
from helpers.course.progress import record_score
from helpers.ranks.launcher import disconnect
from helpers.room.outbox import record_check
from helpers.views.plain import for_log
from helpers.views.verdict import verdict_text

POLL_S = 0.3


def watch(folder: Path) -> None:
    """Check the notebooks saved in a folder until Ctrl-C: print each verdict, and the next exercise."""
    seen = {path: _stamp(path) for path in folder.glob("*.ipynb")}
    # Start from the current state, because only notebooks that are saved from now on are checked.
    before: dict[Path, Mapping[str, str]] = {p: _sources(_read_answers(p)[1]) for p in seen}
    print(
        f"Watching {folder}: each time you save a notebook, the exercises that you changed are checked. "
        "Ctrl-C stops it."
    )
    try:
        for path in watch_saves(folder, seen):
            before[path] = check_changed(path, before.get(path, {}))
    except KeyboardInterrupt:
        print()
    finally:
        disconnect()


def watch_saves(folder: Path, seen: dict[Path, tuple[int, int]]) -> Iterator[Path]:
    """Yield each notebook of the folder that differs from `seen`, forever."""
    while True:
        for path in sorted(folder.glob("*.ipynb")):
            stamp = _stamp(path)
            if stamp != seen.get(path):
                seen[path] = stamp
                yield path
        time.sleep(POLL_S)


def check_changed(path: Path, before: Mapping[str, str]) -> Mapping[str, str]:
    """Check the exercises of a notebook that differ from `before`; return all current sources by name."""
    exercises, found = _read_answers(path)
    now = _sources(found)
    for index, exercise in enumerate(exercises):
        if not now[exercise.name] or now[exercise.name] == before.get(exercise.name):
            continue
        result = grade(exercise, found[exercise.name], cell_number, VISIBLE_SECRET)
        print(f"\n{for_log(verdict_text(result))}", flush=True)
        if result.outcome is not Outcome.UNREADABLE:
            record_score(result.name, result.outcome.value, result.points, result.out_of)
            record_check(result.name, result.outcome.value, result.mistake)
        following = next((e for e in exercises[index + 1 :] if not now[e.name]), None)
        if result.passed and following is not None:
            print(f"Next: Exercise {following.number}, {following.title}", flush=True)
    return now


def _read_answers(path: Path) -> tuple[list[Exercise], Mapping[str, Answer | Problem]]:
    try:
        return find_answers(path)
    except (UnreadableNotebook, OSError):  # not a notebook, or still being written
        return [], {}


def _sources(found: Mapping[str, Answer | Problem]) -> dict[str, str]:
    """Return each answer by name: its source, why it has none, or "" for a stub."""
    return {
        name: answer.source
        if isinstance(answer, Answer)
        else ""
        if answer.kind in NO_ATTEMPT
        else answer.message
        for name, answer in found.items()
    }


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
