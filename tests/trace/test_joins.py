"""Inconsistent numbers in calls of init_process_group are named."""

from __future__ import annotations

import pytest

from helpers.trace.joins import JoinCall, find_join_problem

HERE = "tcp://localhost:1"


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([(0, 2), (0, 2)], "Ranks 0 and 1 both call init_process_group as rank 0."),
        ([(1, 2), (1, 2)], "Ranks 0 and 1 both call init_process_group as rank 1."),
        ([(2, 3)] * 3, "Ranks 0, 1 and 2 all call init_process_group as rank 2."),
        (
            [(0, 2), (2, 2)],
            "Rank 1 calls init_process_group as rank 2 of 2, but ranks count from 0",
        ),
        ([(1, 2), (2, 2)], "Rank 1 calls init_process_group as rank 2 of 2"),
        (
            [(0, 2), (1, 3)],
            "Rank 1 passes world_size=3 to init_process_group, but only 2 ranks run.",
        ),
        ([(0, 3), (1, 2), (2, 3)], "rank 0 passes world_size=3, rank 1 world_size=2."),
        ([(0, 1), (0, 2)], "but with different sizes of the world (1 and 2)."),
        ([(0, 2), (1, 2), (0, 1)], "Ranks 0 and 2 call init_process_group as rank 0 at the same"),
    ],
)
def test_reports_inconsistent_join_numbers(calls: list[tuple[int, int]], says: str) -> None:
    joins = {rank: JoinCall(*call, HERE) for rank, call in enumerate(calls)}
    problem = find_join_problem(joins, len(calls))
    assert problem is not None and says in problem.summary


def test_reports_different_rendezvous_addresses() -> None:
    joins = {rank: JoinCall(rank, 2, f"tcp://localhost:{rank}") for rank in range(2)}
    problem = find_join_problem(joins, 2)
    assert problem is not None and problem.guilty == (0, 1)
    assert "rank 0 waits at tcp://localhost:0, rank 1 at tcp://localhost:1" in problem.summary


@pytest.mark.parametrize(
    "joins",
    [
        {rank: JoinCall(rank, 2, HERE) for rank in range(2)},
        {rank: JoinCall(1 - rank, 2, HERE) for rank in range(2)},
        # pairs that meet at separate places
        {rank: JoinCall(rank % 2, 2, f"store {rank // 2}") for rank in range(4)},
        {0: JoinCall(0, 4, HERE)},
        {0: JoinCall(-1, -1, HERE), 1: JoinCall(-1, -1, HERE)},
    ],
)
def test_accepts_consistent_join_numbers(joins: dict[int, JoinCall]) -> None:
    assert find_join_problem(joins, 4) is None
