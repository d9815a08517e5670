"""Graders for hostile answers, which do not test the reference, because it works."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from helpers.checks import exercise, worlds
from helpers.checks.case import Case
from helpers.checks.draw import Draw, plan_draws
from helpers.checks.exercise import Exercise
from helpers.grading.cache import Cache, current_versions
from helpers.grading.grader import Grader
from helpers.grading.reference_health import References
from helpers.grading.sandbox.levels import NoSandbox, Plan, choose_level
from helpers.grading.sandbox.limits import Limits

SLOT = 3000 + os.getpid() % 1300
"""A slot used only in this run, so that a simultaneous run on this machine does not count our processes."""
CASE_S = 1.0
SMALL = Limits(
    processes=120, world_bytes=1 << 30, cpu_s=1, sockets=300, files=5_000, data_bytes=700 << 20
)


def grader_of(plan: Plan) -> Grader:
    """Return a grader that never tests the reference."""
    versions = current_versions(plan.level)
    return Grader(
        plan, "a secret of the tests", Cache(None), versions, References(None, plan), SLOT
    )


@pytest.fixture(
    scope="session", params=["strongest", pytest.param("landlock", marks=pytest.mark.soak)]
)
def protection(request: pytest.FixtureRequest) -> str:
    """The sandbox; in long runs also Landlock alone, as on machines without bubblewrap."""
    return str(request.param)


@pytest.fixture(scope="session")
def plan(protection: str, plan: Plan) -> Plan:
    if protection == "strongest":
        return plan
    if plan.level == protection:
        pytest.skip("this is that sandbox already")
    try:
        return replace(plan, level=choose_level(protection, plan.staged))
    except NoSandbox as error:
        pytest.skip(str(error))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise the timeout under Landlock, because each sandbox imports torch again, which takes seconds."""
    for item in items:
        if "landlock" in item.name:
            item.add_marker(pytest.mark.timeout(3600), append=False)


@pytest.fixture(autouse=True)
def few_cases(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw two cases of few ranks instead of two dozen, because more cases would not help an attack.

    Except in long runs, a case has only one second, because a waiting answer uses up any limit.
    """

    def few(sizes: Sequence[int], count: int, seed: str, *, small: bool = False) -> list[Draw]:
        few_sizes = [n for n in sizes if n in (2, 3)] or sizes
        return plan_draws(few_sizes, min(count, 2), seed, small=small)

    def short(self: Exercise, *of: Any, **more: Any) -> tuple[Case, ...]:
        return tuple(replace(case, seconds=CASE_S) for case in draw(self, *of, **more))

    monkeypatch.setattr(exercise, "plan_draws", few)
    if request.node.get_closest_marker("soak") is None:
        draw = Exercise.draw
        monkeypatch.setattr(Exercise, "draw", short)
        monkeypatch.setattr(worlds, "_SHARED_WORLD_CPU_S", CASE_S)


@pytest.fixture
def lenient(plan: Plan) -> Grader:
    return grader_of(plan)


@pytest.fixture
def frugal(plan: Plan) -> Grader:
    """A grader with small limits, for bombs."""
    return grader_of(replace(plan, limits=SMALL))


@pytest.fixture
def enclosed(plan: Plan) -> None:
    """Skip tests that require a sandbox with a private /tmp, /dev/shm and process ids."""
    if plan.level != "bubblewrap":
        pytest.skip("bubblewrap alone gives each sandbox files and process ids of its own")
