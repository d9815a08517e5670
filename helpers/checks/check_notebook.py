"""`course check NOTEBOOK`: grade one notebook without a browser, in the same way as `check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from helpers.answers.build import Answer, Problem, cell_number
from helpers.answers.reader import AnswerOrProblem, UnreadableNotebook, read_answers
from helpers.check_result import CheckResult, Outcome
from helpers.checks.check_answer import grade
from helpers.checks.exercise import VISIBLE_SECRET, Exercise
from helpers.checks.headings import all_names_of, headings, notebooks
from helpers.checks.registry import find_exercise, get
from helpers.ranks.clean_settings import hide_own_files
from helpers.ranks.launcher import disconnect
from helpers.views.plain import for_log, plural
from helpers.views.verdict import verdict_text

UNSANDBOXED = (
    "These answers ran without a sandbox, with your permissions. Use `course grade` for other people's "
    "notebooks."
)


def check_notebook(path: Path, only: str = "", *, is_own: bool = False) -> int:
    """Print the result of each exercise of a notebook. Return 0 if all passed, 1 if not, 2 if unreadable.

    only: the name or number of the single exercise to check. Raise UnknownExercise if it does not exist.
    is_own: whether it is the learner's notebook, so that notes on other people's notebooks are left out.
    """
    try:
        results = grade_and_disconnect(path, only)
    except UnreadableNotebook as error:
        print(for_log(str(error)))
        return 2
    for result in results:
        print(for_log(verdict_text(result)), end="\n\n")
    print(summary(results))
    if not is_own:
        print(UNSANDBOXED)
    return 0 if all(result.passed for result in results) else 1


def grade_and_disconnect(path: Path, only: str = "") -> list[CheckResult]:
    """Call `grade_notebook`, then end the rank server instead of keeping it until this process exits."""
    try:
        return grade_notebook(path, only=only)
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
                        "ranks": [msgspec.structs.asdict(row) for row in case.rows],
                    }
                    for case in result.cases
                ],
            }
            for result in results
        ]
    }


def grade_notebook(path: Path, secret: str = VISIBLE_SECRET, only: str = "") -> list[CheckResult]:
    """Grade every exercise of the notebook of which `path` is a copy. Raise UnreadableNotebook."""
    if only:
        chosen = [find_exercise(only)]
        answers = read_answers(path, [chosen[0].name])
    else:
        chosen, answers = find_answers(path)
    with hide_own_files():
        results = [
            grade(exercise, answers[exercise.name], cell_number, secret) for exercise in chosen
        ]
    passed_over = () if only else notes_on_strays(chosen, answers)
    results[-1] = replace(results[-1], notes=(*results[-1].notes, *passed_over))
    return results


def find_answers(path: Path) -> tuple[list[Exercise], AnswerOrProblem]:
    """Return the exercises of each notebook that the file attempts, and the answers found for them.

    The notebooks, possibly two, are recognized by the file's content. The file's name is used only if it
    contains equal parts of several notebooks, or attempts nothing. Raise UnreadableNotebook.
    """
    # by headings, so that only the requested exercises are imported
    known_headings = headings()
    answers = read_answers(path, list(known_headings))
    attempted = Counter(
        known_headings[name].notebook
        for name in known_headings
        if isinstance(answers[name], Answer)
    )
    defined = Counter(
        known_headings[name].notebook for name in known_headings if is_defined(answers[name])
    )
    hinted = next(
        (
            notebook
            for notebook in notebooks()
            if any(n in path.stem for n in all_names_of(notebook))
        ),
        "",
    )
    if not defined and not hinted:
        raise UnreadableNotebook(f"{path.name}: it contains no exercise of this course.")
    counts = attempted or defined or Counter([hinted])
    main_notebook = max(
        sorted(counts),
        key=lambda notebook: (counts[notebook], defined[notebook], notebook == hinted),
    )
    # A single name from a different notebook may be a helper function that has the same name by chance. So it
    # does not count, but `notes_on_strays` reports it.
    chosen = {
        main_notebook,
        *(notebook for notebook, count in attempted.items() if count > 1 or defined[notebook] > 1),
    }
    return [
        get(name) for name in known_headings if known_headings[name].notebook in chosen
    ], answers


def notes_on_strays(
    chosen: Sequence[Exercise], answers: Mapping[str, Answer | Problem]
) -> tuple[str, ...]:
    """Return a note for each answer that does not count because it belongs to a different notebook.

    chosen, answers: from `find_answers`.
    """
    counted = {exercise.notebook for exercise in chosen}
    strays = (
        heading
        for name, heading in headings().items()
        if heading.notebook not in counted and isinstance(answers.get(name), Answer)
    )
    return tuple(
        f"This file also contains an answer to {stray.number} (`{stray.name}`). It does not count "
        f"here, because the file has no other answer from {stray.notebook}. If you want it to "
        f"count, hand it in as that notebook."
        for stray in strays
    )


def is_defined(answer: Answer | Problem) -> bool:
    """Return whether a file defines an answer, even if the answer is a stub or in an unreadable cell."""
    return isinstance(answer, Answer) or answer.kind != "not_defined"


def summary(results: list[CheckResult]) -> str:
    """Return the last line, with the number of passed exercises."""
    passed = sum(result.passed for result in results)
    missing = sum(result.outcome is Outcome.NOT_ATTEMPTED for result in results)
    missing_text = f", {missing} not attempted" if missing else ""
    return f"{passed} of {plural(len(results), 'exercise')} passed{missing_text}."
