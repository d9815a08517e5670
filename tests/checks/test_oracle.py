"""Run the reference solution before any answer, once per secret, and report a fault if it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.answers.build import Answer, build_answer
from helpers.check_result import CheckResult, Outcome
from helpers.checks import right_values, worlds
from helpers.checks.case import Case
from helpers.checks.check_answer import grade
from helpers.checks.draw import Draw
from helpers.checks.exercise import Exercise
from helpers.checks.fault import CheckFault
from helpers.checks.mistakes import clear_caches
from helpers.checks.registry import get
from helpers.checks.right_values import Reference

SUM = "def total(rank, world_size, x):\n    dist.all_reduce(x)\n    return {'sum': x}\n"
TWICE = SUM.replace("{'sum': x}", "{'sum': 2 * x}")
RAISES = SUM.replace("return", "raise ValueError('broken')\n    return")


def case(draw: Draw) -> Case:
    given = [(x,) for x in draw.tensors((2,), torch.float64)]
    return Case("numbers", given, Reference(margin=1.0))


EXERCISE = Exercise(case, sizes=(1, 2), count=4, name="total", notebook="99_none", title="A total")


def check_source(source: str, secret: str = "visible", **more: Any) -> CheckResult:
    found = build_answer(["import torch.distributed as dist", source], "total")
    assert isinstance(found, Answer), found
    return grade(EXERCISE, found, str, secret, **more)


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Use a program as the exercise's reference solution."""

    def put(source: str) -> None:
        whole = f"import torch.distributed as dist\n{source}"
        monkeypatch.setattr(right_values, "reference_source", lambda exercise: whole)

    return put


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the launched worlds by size."""
    sizes: list[int] = []
    real = worlds.run_on_ranks

    def counted(body: Any, options: Any, **more: Any) -> Any:
        sizes.append(options.world_size)
        return real(body, options, **more)

    monkeypatch.setattr(worlds, "run_on_ranks", counted)
    yield sizes


@pytest.mark.extended
def test_judges_by_reference_values(reference: Callable[[str], None]) -> None:
    reference(SUM)
    assert check_source(SUM).passed
    wrong = check_source(TWICE)
    assert wrong.outcome is Outcome.WRONG
    assert "is" in next(row.problem for c in wrong.cases for row in c.rows if row.problem)


def test_changed_reference_changes_verdicts(reference: Callable[[str], None]) -> None:
    reference(SUM)
    assert check_source(SUM).passed and not check_source(TWICE).passed
    reference(TWICE)
    assert check_source(TWICE).passed and not check_source(SUM).passed


def test_failing_reference_blames_check(reference: Callable[[str], None]) -> None:
    reference(RAISES)
    found = check_source(SUM)
    assert found.outcome is Outcome.FAULT
    assert "This check is at fault" in found.message and "broken" in found.message


def test_second_check_reuses_reference_results(
    reference: Callable[[str], None], launches: list[int]
) -> None:
    reference(SUM + "\n\n# a program of its own\n")
    assert check_source(SUM, "one").passed
    first = len(launches)
    assert check_source(SUM, "one").passed
    second = len(launches) - first
    assert first - second == 2  # the reference ran once, in one world for each of the two sizes


def test_answer_server_never_runs_reference(reference: Callable[[str], None]) -> None:
    reference(SUM + "\n\n# another one\n")
    with pytest.raises(CheckFault, match="was not run"):
        right_values.draw(EXERCISE, "one", own_server=False)
    right_values.run_reference(EXERCISE, right_values.missing_sets(EXERCISE, [("one", "")]))
    assert right_values.missing_sets(EXERCISE, [("one", "")]) == []
    assert all(each.right.right for each in right_values.draw(EXERCISE, "one", own_server=False))


def test_secret_sets_share_reference_launches(
    reference: Callable[[str], None], launches: list[int]
) -> None:
    apart = []
    for secret in ("three", "four"):
        reference(SUM)
        apart += [each.right.right for each in right_values.draw(EXERCISE, secret)]
    launches.clear()
    reference(SUM + "\n\n# a third one\n")
    right_values.run_reference(EXERCISE, [("three", ""), ("four", "")])
    assert sorted(launches) == [1, 2]
    shared = [
        each.right.right
        for secret in ("three", "four")
        for each in right_values.draw(EXERCISE, secret, own_server=False)
    ]
    assert str(shared) == str(apart)


def test_uses_sealed_reference_without_solutions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exercise = replace(get("average_gradients"))
    path = tmp_path / "nb98_none" / "average_gradients.answers"
    path.parent.mkdir()
    monkeypatch.setattr(right_values, "answers_path", lambda exercise: path)
    clear_caches()
    with pytest.raises(CheckFault, match="is needed"):
        right_values.reference_source(exercise)
    path.with_suffix(".reference").write_bytes(right_values.seal_reference(SUM))
    assert right_values.reference_source(exercise) == SUM
