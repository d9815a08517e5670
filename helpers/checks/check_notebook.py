"""`course check NOTEBOOK`: grade one notebook without a browser, in the same way as `check`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.reader import UnreadableNotebook, read_answers
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.headings import headings
from helpers.checks.registry import find, get
from helpers.checks.result import CheckResult, Outcome
from helpers.ranks.launcher import disconnect
from helpers.ranks.neutral import without_own_files
from helpers.views.plain import for_log
from helpers.views.verdict import verdict_text

UNSANDBOXED = (
    "Answers run unsandboxed, with your permissions. Grade other people's with `course grade`.\n"
)


def check_notebook(path: Path, only: str = "") -> int:
    """Print what became of each exercise of a notebook. Give 0 if all passed, 1 if not, 2 if unread.

    only: the one exercise to check, by its name or number. Raise UnknownExercise if there is none such.
    """
    try:
        results = checked(path, only)
    except UnreadableNotebook as error:
        print(for_log(str(error)))
        return 2
    print(UNSANDBOXED)
    for result in results:
        print(for_log(verdict_text(result)), end="\n\n")
    print(summary(results))
    return 0 if all(result.passed for result in results) else 1


def checked(path: Path, only: str = "") -> list[CheckResult]:
    """Return `results_of`, and end the rank server, which would otherwise stay until this process ends."""
    try:
        return results_of(path, only=only)
    finally:
        disconnect()


def check_data(results: list[CheckResult]) -> dict[str, Any]:
    """Return results as data, without runs."""
    return {
        "exercises": [
            {
                "name": result.name,
                "heading": result.heading,
                "outcome": result.outcome.value,
                "points": result.points,
                "out_of": result.out_of,
                "message": result.message,
                "notes": list(result.notes),
                "cases": [
                    {
                        "label": case.label,
                        "outcome": case.outcome.value,
                        "message": case.message,
                        "broken_rules": list(case.broken),
                        "advice": case.advice,
                        "ranks": [asdict(row) for row in case.rows],
                    }
                    for case in result.cases
                ],
            }
            for result in results
        ]
    }


def results_of(path: Path, secret: str = VISIBLE_SECRET, only: str = "") -> list[CheckResult]:
    """Grade every exercise of the notebook that `path` is a copy of. Raise UnreadableNotebook."""
    wanted = [find(only)] if only else exercises_of(path)
    found = read_answers(path, [exercise.name for exercise in wanted])
    with without_own_files():
        return [grade(exercise, found[exercise.name], cell_number, secret) for exercise in wanted]


def exercises_of(path: Path) -> list[Exercise]:
    """Return the exercises to look for: of the notebook whose name this is, else of any it attempts.

    A file that was renamed is known by the exercises that it defines: read for all of them, it is
    taken for the notebook of which it attempts the most.
    """
    # by their headings: only the exercises that are looked for are imported
    known = headings()
    notebooks = list(dict.fromkeys(heading.notebook for heading in known.values()))
    named = [each for each in notebooks if path.stem.startswith((each, each[:3]))]
    if not named:
        found = read_answers(path, list(known))
        attempts = [known[name] for name in known if isinstance(found[name], Answer)]
        attempts = attempts or [known[name] for name in known if _is_named(found[name])]
        if not attempts:
            raise UnreadableNotebook(f"{path.name}: no exercise of this course is in it.")
        named = [Counter(each.notebook for each in attempts).most_common(1)[0][0]]
    return [get(name) for name, heading in known.items() if heading.notebook in named]


def _is_named(found: Answer | Problem) -> bool:
    return isinstance(found, Problem) and "no cell defines" not in found.message


def summary(results: list[CheckResult]) -> str:
    """Write the last line: how many passed, with how many points."""
    passed = sum(result.passed for result in results)
    points = sum(result.points for result in results)
    out_of = sum(result.out_of for result in results)
    missing = sum(result.outcome is Outcome.NOT_ATTEMPTED for result in results)
    rest = f", {missing} not attempted" if missing else ""
    return f"{passed} of {len(results)} exercises passed{rest}; {points:g} of {out_of:g} points."
