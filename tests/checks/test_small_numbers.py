"""Show a wrong answer's case with easily readable numbers, if it fails with such numbers."""

from __future__ import annotations

import re

import pytest
import torch

from helpers.answers.build import build_answer
from helpers.check_result import CaseVerdict, CheckResult
from helpers.checks.check_answer import grade
from helpers.checks.counterexample import SMALL_NUMBERS_ADVICE, has_hard_numbers
from helpers.checks.registry import get

ADDS_NOTHING = """
def ping_pong(rank, world_size, ball, rounds):
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        elif rank == 1:
            dist.recv(ball, 0)
            dist.send(ball, 0)
    return ball if rank < 2 else None
"""
IN_FLOAT32 = """
def ping_pong(rank, world_size, ball, rounds):
    own = ball.to(torch.float32)
    for _ in range(rounds):
        if rank == 0:
            dist.send(own, 1)
            dist.recv(own, 1)
        elif rank == 1:
            dist.recv(own, 0)
            own += 1
            dist.send(own, 0)
    return own.to(ball.dtype) if rank < 2 else None
"""


def check_source(source: str) -> CheckResult:
    answer = build_answer(["import torch\nimport torch.distributed as dist", source], "ping_pong")
    return grade(get("ping_pong"), answer, str, every_case=False)


def shown_case(result: CheckResult) -> CaseVerdict:
    return next(case for case in result.cases if not case.passed)


@pytest.mark.extended
def test_shows_case_with_small_numbers() -> None:
    case = shown_case(check_source(ADDS_NOTHING))
    numbers = [number for row in case.rows for number in re.findall(r"\d+", row.expected)]
    assert numbers and all(len(number) <= 2 for number in numbers)
    assert SMALL_NUMBERS_ADVICE not in case.message


@pytest.mark.extended
def test_blames_large_numbers_if_small_pass() -> None:
    case = shown_case(check_source(IN_FLOAT32))
    assert case.message == SMALL_NUMBERS_ADVICE
    assert any(re.search(r"\d{8}", row.expected) for row in case.rows)


@pytest.mark.parametrize("name", ["ping_pong", "broadcast_from", "ring_all_reduce", "split_sum"])
def test_small_draw_keeps_case_and_shapes(name: str) -> None:
    exercise = get(name)
    for case, small in zip(exercise.draw(), exercise.draw(small=True), strict=True):
        assert small.label == case.label and small.world_size == case.world_size
        assert not has_hard_numbers(small)
        for mine, theirs in zip(case.given, small.given, strict=True):
            for one, other in zip(mine, theirs, strict=True):
                if isinstance(one, torch.Tensor):
                    assert (one.shape, one.dtype) == (other.shape, other.dtype)
