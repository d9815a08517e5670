"""A rank that leaves during communication is named, not only the lost connection."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.failures import Deadlock, RankFailed
from helpers.ranks.launcher import launch

pytestmark = pytest.mark.usefixtures("preloaded")


def one() -> torch.Tensor:
    return torch.ones(1)


def returns_early(rank: int, n: int) -> None:
    for step in range(4):
        if rank == 2 and step == 2:
            dist.destroy_process_group()
            return
        dist.all_reduce(one())


def destroys_and_continues(rank: int, n: int) -> None:
    dist.all_reduce(one())
    if rank == 2:
        dist.destroy_process_group()
        time.sleep(2)
    else:
        dist.all_reduce(one())


def leaves_before_a_message(rank: int, n: int) -> None:
    dist.all_reduce(one())
    if rank == 2:
        dist.destroy_process_group()
    if rank == 1:
        time.sleep(0.5)
        dist.recv(one(), 2)


def destroys_a_group(rank: int, n: int) -> None:
    group = dist.new_group([1, 2])
    if rank == 2:
        dist.destroy_process_group(group)
    if rank == 1:
        time.sleep(0.5)
        dist.all_reduce(one(), group=group)


PROGRAMS = [returns_early, destroys_and_continues, leaves_before_a_message, destroys_a_group]


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_reports_departed_rank(program: Callable[[int, int], None]) -> None:
    failure = launch(program, 4, timeout=30, on_failure="return").failure
    # It is random which connection breaks first, and sometimes all other ranks only wait.
    assert isinstance(failure, (RankFailed, Deadlock)), failure
    assert "Rank 2 has " in str(failure) and "dist.barrier() first" not in str(failure), failure


@pytest.mark.extended
def test_reports_error_before_lost_connections() -> None:
    def raises(rank: int, n: int) -> None:
        if rank == 1:
            raise ValueError("first")
        dist.all_reduce(one())

    failure = launch(raises, 4, timeout=30, on_failure="return").failure
    assert isinstance(failure, RankFailed) and failure.rank == 1 and "left" not in str(failure)
