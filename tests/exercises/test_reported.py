"""Assert that values that only a rank can confirm are declared, and checked for plausibility."""

from __future__ import annotations

import pytest

from helpers.checks.draw import plan_draws
from helpers.checks.execution import find_impossible_value
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.named_parts import NamedParts
from helpers.checks.registry import exercises
from helpers.grading.record import ExerciseRecord

# In notebook 00, ranks count nothing.
WITH_PROGRAMME = [e for e in exercises().values() if e.driver and e.notebook[:2] > "00"]


def seen_by_ranks(exercise: Exercise) -> set[str]:
    """Return the parts that are "" without observations, which are not compared with drawn values."""
    names: set[str] = set()
    for draw in plan_draws(exercise.sizes, 3, exercise.name):
        right = exercise.case(draw).right
        for parts in right.right if isinstance(right, NamedParts) else ():
            names |= {name for name, value in parts.items() if value == ""}
    return names


@pytest.mark.parametrize("exercise", WITH_PROGRAMME, ids=lambda exercise: exercise.name)
def test_exercises_declare_rank_reported_values(exercise: Exercise) -> None:
    assert seen_by_ranks(exercise) <= {*exercise.reported}


def test_scripts_declare_worker_reported_values() -> None:
    silent = {e.name for e in WITH_PROGRAMME if e.kind is Kind.SCRIPT and not e.reported}
    # these return only values that are compared with drawn ones, or computed by the process that starts
    # them
    assert silent == {
        "Holes",
        "checkpoint_and_resume",
        "mpi_all_reduce",
        "resume_exactly",
    }


@pytest.mark.parametrize(
    "value", [float("nan"), -2, -0.5, 1 << 70, object(), [[float("inf")]], b"x"]
)
def test_rejects_impossible_reports(value: object) -> None:
    assert find_impossible_value(("count",), {"count": value})


@pytest.mark.parametrize("value", ["", "seen", 0, 7, True, None, [1.5, 2.0], {"layer": [1]}])
def test_accepts_possible_reports(value: object) -> None:
    assert find_impossible_value(("count",), {"count": value, "other": float("nan")}) is None


def test_review_lists_forgeable_values() -> None:
    record = ExerciseRecord("a", "1.1", "A", "passed", 1, 1, reported=("memory", "steps"))
    assert record.review_reasons == ()
    flagged = ExerciseRecord("a", "1.1", "A", "passed", 1, 1, flags=("odd",), reported=("memory",))
    assert flagged.review_reasons == ("odd", "reported only by the answer's own ranks: memory")
