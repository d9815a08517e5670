"""Measure how long a check of a right answer takes in a notebook, on an idle and on a busy machine."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.answers.data import Answer
from helpers.answers.reader import read_answers
from helpers.check_result import Outcome
from helpers.checks.check_answer import grade
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.match_mistakes import Matches
from helpers.checks.mistakes import known_mistakes
from helpers.checks.registry import exercises
from helpers.ranks.launcher import connect
from tests.benchmarks.timing import Figure, seconds_of, spread

SOLUTIONS = Path(__file__).parents[2] / "solutions"
BUSY = 16
"""Number of busy processes during the checks, regardless of the number of cores."""
OUTSIDE = {Kind.SCRIPT, Kind.MEASUREMENT}
"""Kinds whose time depends mostly on starting agents, or on the exercise's own measurements."""


def notebook_checks() -> Iterator[Figure]:
    """Check the reference solution of every exercise, on an idle machine and on a busy one."""
    answers = dict(_references())
    connect().preload()
    # The first check imports modules, so it is not measured
    for exercise, answer in answers.values():
        grade(exercise, answer, str, every_case=False)
    idle, passed = _check_answers(answers)
    with _busy():
        _, passed_busy = _check_answers(answers)
    quick = {name: s for name, s in idle.items() if answers[name][0].kind not in OUTSIDE}
    slow = {name: s for name, s in idle.items() if name not in quick}
    most = max(quick, key=lambda name: quick[name])
    yield Figure(
        f"checking a right answer ({len(quick)} exercises in ranks)",
        spread(list(quick.values())),
        f"the longest: {most}",
        target="≤ 0.4 s, median",
    )
    yield Figure(f"the same ({len(slow)} scripts and measurements)", spread(list(slow.values())))
    cases = [len(exercise.draw()) for exercise, _ in answers.values()]
    yield Figure(
        "cases of a check",
        f"{statistics.median(cases):.0f}, median",
        f"{min(cases)} to {max(cases)}",
        target="≥ 24",
    )
    yield Figure(
        "right answers that pass, idle machine", f"{passed} of {len(answers)}", target="all"
    )
    yield Figure(
        f"the same next to {BUSY} busy processes", f"{passed_busy} of {len(answers)}", target="all"
    )


def advice() -> Iterator[Figure]:
    """Check one known mistake of each exercise twice: the first finds its sentence, the second knows it."""
    connect().preload()
    extra, ratios = [], []
    for exercise in exercises().values():
        wrong = [m for m in known_mistakes(exercise) if m.outcome is Outcome.WRONG]
        for mistake in wrong[:1]:
            answer, matches = Answer(exercise.name, mistake.source, ()), dict[str, str]()
            # The first check imports modules, so it is not measured
            grade(exercise, answer, str, every_case=False)

            def check(e: Exercise = exercise, a: Answer = answer, m: Matches = matches) -> None:
                grade(e, a, str, every_case=False, matches=m)

            first, again = seconds_of(check), seconds_of(check)
            extra.append(first - again)
            ratios.append(first / again)
    yield Figure(
        f"finding the sentence for a wrong answer ({len(extra)} exercises)",
        spread(extra),
        f"a check takes {statistics.median(ratios):.2f} times as long, median",
        target="≤ 0.25 s, median",
    )


def _references() -> Iterator[tuple[str, tuple[Exercise, Answer]]]:
    for path in sorted(SOLUTIONS.glob("*.ipynb")):
        mine = [each for each in exercises().values() if each.notebook == path.stem]
        for name, answer in read_answers(path, [each.name for each in mine]).items():
            assert isinstance(answer, Answer), answer
            yield name, (exercises()[name], answer)


def _check_answers(answers: dict[str, tuple[Exercise, Answer]]) -> tuple[dict[str, float], int]:
    """Return the seconds of each check, and the number of passing answers."""
    seconds, passed = {}, 0
    for name, (exercise, answer) in answers.items():
        results = []
        seconds[name] = seconds_of(
            lambda e=exercise, a=answer, r=results: r.append(grade(e, a, str))
        )
        passed += results[0].passed
        if not results[0].passed:
            print(f"{name}: {results[0].outcome.value}", file=sys.stderr, flush=True)
    return seconds, passed


@contextmanager
def _busy() -> Iterator[None]:
    # each of them ends with this process, even if this process is killed
    program = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
    words = [sys.executable, "-c", program]
    busy = [subprocess.Popen(words) for _ in range(BUSY)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
