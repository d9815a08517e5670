"""Assert that every mutant of a reference solution is rejected, except those that are right as well.

`equivalent_mutants.toml` lists the latter, with reasons. Each run of `make soak` tries the same few of
every exercise. MUTANTS=0 in the environment tries all of them, which takes hours.
"""

from __future__ import annotations

import os
import random
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.answers.data import Answer
from helpers.answers.reader import read_answers
from helpers.checks.check_answer import grade
from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises, get
from helpers.course.workspace import find_workspace
from tests.exercises.mutants import Mutant, mutants

EQUIVALENT = tomllib.loads((Path(__file__).parent / "equivalent_mutants.toml").read_text())
"""Exercise -> line before and after -> the reason why this answer is right, too."""
MOST = int(os.environ.get("MUTANTS", "24"))
outcomes: Counter[str] = Counter()

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("preloaded"),
]


def reference_mutants(name: str) -> tuple[Answer, list[Mutant]]:
    solutions = find_workspace().solutions
    answer = read_answers(solutions / f"{get(name).notebook}.ipynb", [name])[name]
    assert isinstance(answer, Answer), answer
    own = answer.source.partition(f" {name}(")[
        2
    ]  # helper functions required by other exercises are not changed
    names = {name, *(other for other in _defined(answer.source) if other in own)}
    found = list(mutants(answer.source, names - (exercises().keys() - {name})))
    few = MOST if get(name).kind is not Kind.SCRIPT else max(1, MOST // 4)
    if MOST and len(found) > few:
        found = random.Random(name).sample(found, few)
    return answer, found


def _defined(source: str) -> set[str]:
    import ast

    kinds = (ast.FunctionDef, ast.ClassDef)
    return {top.name for top in ast.parse(source).body if isinstance(top, kinds)}


@pytest.mark.parametrize("name", exercises())
def test_rejects_mutants_of_reference(name: str) -> None:
    answer, found = reference_mutants(name)
    known = EQUIVALENT.get(name, {})
    survived = []
    for mutant in found:
        changed = replace(answer, source=mutant.source)
        result = grade(get(name), changed, str, every_case=False)
        outcomes[result.outcome.value] += 1
        if result.passed is not (mutant.change in known):
            survived.append(f"{'passes' if result.passed else 'fails'}: {mutant.change}")
    assert not survived, f"{len(found)} mutants; " + "; ".join(survived)


def test_prints_outcomes_of_all_mutants() -> None:
    print(f"\nmutants: {sum(outcomes.values())}, of which {dict(outcomes)}")
