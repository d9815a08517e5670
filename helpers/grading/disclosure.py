"""Choose the known mistakes for a learner's bundle so that together they do not contain a solution.

A mistake is recognized by running it, so the bundle needs its program. Most of these programs differ from the
solution in only one line, so together they would contain every line. Therefore one line of each exercise's
solution is kept out of the bundle, together with all mistakes that contain this line. The line is chosen so
that the fewest sentences of advice are lost.

An exercise keeps all its mistakes if only the reference solution can compute its right values, because the
bundle has to contain that solution anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from helpers.checks.mistakes import (
    ANSWERS,
    KnownMistake,
    answers_path,
    read_answers_at,
    select_mistakes,
)
from helpers.checks.reference_source import Program, read_reference
from helpers.checks.registry import exercises
from helpers.checks.right_values import needs_reference
from helpers.course.workspace import Workspace


@dataclass(frozen=True)
class BundledMistakes:
    """The mistakes of a bundle.

    Args:
        by_file: {file of answers: its mistakes}.
        left_out: The number of mistakes left out.
        laid_open: Exercises for which the bundle contains every line of the solution.
    """

    by_file: Mapping[Path, Sequence[KnownMistake]]
    left_out: int
    laid_open: tuple[str, ...]


@cache
def choose_mistakes(workspace: Workspace) -> BundledMistakes:
    """Return the known mistakes that a bundle may contain. Raise ValueError if a file is damaged."""
    given = _given_lines(workspace)
    known = [each for each in exercises().values() if each.notebook]
    solutions = {
        each.name: read_reference(workspace.solutions, each.notebook, each.name) for each in known
    }
    sealed = {
        line
        for each in known
        if needs_reference(each)
        for line in _lines(solutions[each.name].source)
    }
    files = sorted((workspace.root / "helpers" / "exercises").rglob(f"*{ANSWERS}"))
    kept = {path: [_stripped(x) for x in select_mistakes(read_answers_at(path))] for path in files}
    count = sum(map(len, kept.values()))
    laid_open = []
    for exercise in known:
        own = answers_path(exercise)
        lines = _own_lines(solutions[exercise.name]) - given
        if secret := lines - sealed:
            _leave_out_a_line(kept, own, secret)
            continue
        laid_open.append(exercise.name)
        if lines and not needs_reference(exercise):
            # The solution is part of another solution in the bundle, but not in this exercise's file.
            own_file = {own: kept.get(own, [])}
            _leave_out_a_line(own_file, own, lines)
            kept |= own_file
    return BundledMistakes(kept, count - sum(map(len, kept.values())), tuple(laid_open))


def _leave_out_a_line(
    mistakes_by_file: dict[Path, list[KnownMistake]], answers_file: Path, secret: Iterable[str]
) -> None:
    """Choose one line of a solution among `secret`, and remove all mistakes that contain it.

    answers_file: the file of the solution's exercise.
    """

    def cost(line: str) -> tuple[int, int, str]:
        left = {path: _without(mistakes, line) for path, mistakes in mistakes_by_file.items()}
        sentences = _count_sentences(mistakes_by_file.values()) - _count_sentences(left.values())
        return (
            sentences,
            sum(map(len, mistakes_by_file.values())) - sum(map(len, left.values())),
            line,
        )

    # only a line contained in few of the exercise's mistakes can have a low cost
    by_own_cost = sorted(
        secret,
        key=lambda line: (-len(_without(mistakes_by_file.get(answers_file, []), line)), line),
    )
    best = min(by_own_cost[:_MAX_TRIED], key=cost)
    for path, mistakes in mistakes_by_file.items():
        mistakes_by_file[path] = _without(mistakes, best)


_MAX_TRIED = 6


def _count_sentences(files: Iterable[Sequence[KnownMistake]]) -> int:
    return sum(len({mistake.words for mistake in mistakes}) for mistakes in files)


def _without(mistakes: Sequence[KnownMistake], line: str) -> list[KnownMistake]:
    return [each for each in mistakes if line not in each.source or line not in _lines(each.source)]


def _stripped(mistake: KnownMistake) -> KnownMistake:
    """Return a mistake without its parts that checks do not need.

    An edit contains lines of the solution. A mistake that is recognized by an observation is never run.
    """
    return replace(mistake, edit="", base="", source="" if mistake.seen else mistake.source)


def _given_lines(workspace: Workspace) -> set[str]:
    """Return the lines of code in the learners' notebooks, which are public."""
    found: set[str] = set()
    for path in workspace.notebooks.glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                found |= _lines("".join(cell["source"]))
    return found


def _own_lines(program: Program) -> set[str]:
    first, end = program.own_range
    return _lines("\n".join(program.lines[first:end]))


def _lines(source: str) -> set[str]:
    """Return a source's lines without indentation, blank lines and comments."""
    lines = (line.strip() for line in source.splitlines())
    return {line for line in lines if line and not line.startswith("#")}
