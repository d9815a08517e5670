"""Try each known way to bypass the rules on communication, and compare its fate with the documented one."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.check_answer import grade
from helpers.checks.registry import get
from helpers.grading.record import ExerciseRecord
from helpers.grading.results import record_of_results
from helpers.grading.sandbox.levels import Plan, Sandbox
from tests.grading.hostile.attack import text_of
from tests.grading.hostile.bypasses import BYPASSES, SHOW
from tests.submission_files import PRELUDE

EXERCISE = "ring_all_reduce"


class Fate(Enum):
    """The fate of a bypass.

    CONTAINED: the call is recorded, and breaks the rule. FLAGGED: the call is not recorded, but the answer's
    source contains a suspicious name, which the record flags. UNNOTICED: the source also hides the name. If
    the answer also makes the required calls, for show, it passes.
    """

    CONTAINED = "contained"
    FLAGGED = "flagged"
    UNNOTICED = "unnoticed"


FATES = {
    "torch.ops.c10d": Fate.CONTAINED,
    "the process group's methods": Fate.CONTAINED,
    "a new group": Fate.CONTAINED,
    "an import hidden in a string": Fate.CONTAINED,
    "functional collectives": Fate.CONTAINED,
    "collectives of objects": Fate.CONTAINED,
    "the backend's methods, below the dispatcher": Fate.FLAGGED,
    "a key-value store": Fate.FLAGGED,
    "a socket of its own": Fate.FLAGGED,
    "a shared file": Fate.FLAGGED,
    "shared memory": Fate.FLAGGED,
    "the recorder switched off": Fate.FLAGGED,
    "a case's end told too early, in its caller's frame": Fate.CONTAINED,
    "a sparse tensor": Fate.CONTAINED,
    "a shared file, named at run time": Fate.UNNOTICED,
}


@pytest.fixture(scope="module")
def sandbox(plan: Plan) -> Iterator[Sandbox]:
    """One sandbox for all bypasses, each of which begins with fresh ranks and an empty folder."""
    with Sandbox(plan) as sandbox:
        yield sandbox


def grade_answer(sandbox: Sandbox, name: str) -> ExerciseRecord:
    answer = build_answer([PRELUDE, BYPASSES[name], SHOW], EXERCISE)
    assert isinstance(answer, Answer), answer
    exercise = get(EXERCISE)
    result = grade(exercise, answer, str, connection=sandbox.connection)
    return record_of_results(exercise, answer, result, result)


def test_every_bypass_has_documented_outcome() -> None:
    assert set(FATES) == set(BYPASSES)


# Each run tries one or two bypasses of each fate; long runs try all.
OFTEN = (
    "torch.ops.c10d",
    "a case's end told too early, in its caller's frame",
    "a key-value store",
    "the recorder switched off",
    "a shared file, named at run time",
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.soak) for n in FATES]
)
def test_bypass_meets_its_documented_outcome(sandbox: Sandbox, name: str) -> None:
    fate = FATES[name]
    if name == "shared memory" and sandbox.plan.level != "bubblewrap":
        pytest.skip("what one case leaves in this machine's /dev/shm is in the way of the next")
    record = grade_answer(sandbox, name)
    if fate is Fate.CONTAINED:
        assert (record.outcome, record.points) == ("forbidden call", 0.0), text_of(record)
        return
    assert record.outcome == "passed", text_of(record)
    assert bool(record.flags) is (fate is Fate.FLAGGED), record.flags
