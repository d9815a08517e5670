"""`course check NOTEBOOK`: grade one notebook without a browser, in the same way as `check`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.reader import AnswerOrProblem, UnreadableNotebook, read_answers
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.grade import grade
from helpers.checks.headings import headings, names_of, notebooks
from helpers.checks.registry import find, get
from helpers.checks.result import CheckResult, Outcome
from helpers.ranks.clean_settings import without_own_files
from helpers.ranks.launcher import disconnect
from helpers.views.plain import for_log, plural
from helpers.views.verdict import verdict_text

UNSANDBOXED = (
    "Answers run without a sandbox, with your permissions. Use `course grade` for other people's "
    "notebooks.\n"
)


def check_notebook(path: Path, only: str = "") -> int:
    """Print the result of each exercise of a notebook. Return 0 if all passed, 1 if not, 2 if unreadable.

    only: the one exercise to check, by its name or number. Raise UnknownExercise if it does not exist.
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
    """Return `results_of`, and end the rank server, which would otherwise run until this process exits."""
    try:
        return results_of(path, only=only)
    finally:
        disconnect()


def check_data(results: list[CheckResult]) -> dict[str, Any]:
    """Return results as plain data, without runs."""
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
    if only:
        wanted = [find(only)]
        found = read_answers(path, [wanted[0].name])
    else:
        wanted, found = answers_in(path)
    with without_own_files():
        return [grade(exercise, found[exercise.name], cell_number, secret) for exercise in wanted]


def answers_in(path: Path) -> tuple[list[Exercise], AnswerOrProblem]:
    """Return the exercises of each notebook that the file attempts, and the answers found for them.

    The content of the file decides which notebooks it contains, and these may be two. The file's name
    decides only if the file contains the same amount of several notebooks, or attempts nothing. Raise
    UnreadableNotebook.
    """
    # by their headings, so that only the exercises that are looked for are imported
    known = headings()
    found = read_answers(path, list(known))
    attempted = Counter(known[x].notebook for x in known if isinstance(found[x], Answer))
    defined = Counter(known[x].notebook for x in known if is_defined(found[x]))
    hint = next((each for each in notebooks() if any(n in path.stem for n in names_of(each))), "")
    if not defined and not hint:
        raise UnreadableNotebook(f"{path.name}: it contains no exercise of this course.")
    most = attempted or defined or Counter([hint])
    first = max(sorted(most), key=lambda each: (most[each], defined[each], each == hint))
    # A single name of a different notebook may be a helper function that has the same name by chance.
    wanted = {first, *(each for each, count in attempted.items() if count > 1 or defined[each] > 1)}
    return [get(name) for name in known if known[name].notebook in wanted], found


def is_defined(found: Answer | Problem) -> bool:
    """Return whether a file defines an answer, even if it is a stub or in an unreadable cell."""
    return isinstance(found, Answer) or found.kind != "not_defined"


def summary(results: list[CheckResult]) -> str:
    """Return the last line: how many exercises passed."""
    passed = sum(result.passed for result in results)
    missing = sum(result.outcome is Outcome.NOT_ATTEMPTED for result in results)
    rest = f", {missing} not attempted" if missing else ""
    return f"{passed} of {plural(len(results), 'exercise')} passed{rest}."
