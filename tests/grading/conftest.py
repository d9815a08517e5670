"""A grader inside this machine's sandbox, for tests with single notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.grading.cache import Cache, current_versions
from helpers.grading.grader import Grader
from helpers.grading.reference_health import References
from helpers.grading.sandbox.levels import NoSandbox, Plan, choose_level
from helpers.grading.sandbox.staged import StagedFiles

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.fixture(scope="session")
def staged() -> Iterator[StagedFiles]:
    with StagedFiles() as staged:
        yield staged


@pytest.fixture(scope="session")
def plan(staged: StagedFiles) -> Iterator[Plan]:
    """The requested or the strongest working sandbox, whose template is made before tests count anything."""
    try:
        level = choose_level(os.environ.get("REAL_RANKS_TEST_LEVEL", "auto"), staged)
    except NoSandbox as error:
        pytest.skip(str(error))
    with Plan(level, staged) as plan:
        if level == "bubblewrap":
            plan.preload()
        yield plan


@pytest.fixture
def grader(plan: Plan) -> Grader:
    references = References(SOLUTIONS, plan, slot=2)
    versions = current_versions(plan.level)
    return Grader(plan, "a secret of the tests", Cache(None), versions, references, 1)
