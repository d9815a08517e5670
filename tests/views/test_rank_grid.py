"""Ranks as cells: panels of groups that share no rank, or a panel for each dimension of a mesh."""

from __future__ import annotations

import pytest
import torch

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.rank_grid import lines_of, mesh_groups, panels_of, rank_grid
from tests.views.builders import event, ping_pong, trace_of_rows

GRID = [[0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5]]


def in_rows_and_columns() -> Trace:
    rows = []
    for rank in range(6):
        mine = [tuple(group) for group in GRID if rank in group]
        calls = [event(rank, n, "all_reduce", n, n + 1, group_ranks=g) for n, g in enumerate(mine)]
        rows.append(calls)
    return trace_of_rows(6, rows)


def test_overlapping_groups_use_different_panels() -> None:
    assert panels_of([(0, 1), (0, 2), (2, 3), (1, 3)]) == (((0, 1), (2, 3)), ((0, 2), (1, 3)))


@pytest.mark.parametrize("what", [GRID, GRID[::-1], in_rows_and_columns()])
def test_draws_ranks_row_by_row(what: Trace | list[list[int]]) -> None:
    picture = rank_grid(what)
    assert picture.text == (
        "6 ranks in 2 x 3\ngroups: A 0 1 2 | B 3 4 5\ngroups: A 0 3 | B 1 4 | C 2 5"
    )
    rows, columns = ([t.get_text() for t in axes.texts] for axes in picture.figure.axes)
    assert rows[8:10] == ["4", "B · 1"]
    assert columns[6:10] == ["3", "A · 1", "4", "B · 1"]


def test_distinguishes_ungrouped_ranks_without_color() -> None:
    (axes,) = rank_grid([[1, 3]], cols=4).figure.axes
    assert [t.get_text() for t in axes.texts][1::2] == ["no group", "A · 0", "no group", "A · 1"]
    frames = [patch for patch in axes.patches if patch.get_hatch() is None]
    assert [frame.get_linestyle() for frame in frames] == [":", "-", ":", "-"]


def test_groups_of_panel_have_different_hatches() -> None:
    (axes,) = rank_grid([[0], [1], [2]]).figure.axes
    assert len({patch.get_hatch() for patch in axes.patches} - {None}) == 3


def test_run_without_subgroups_makes_one_row() -> None:
    assert rank_grid(ping_pong()).text == "2 ranks in 1 x 2\ngroups: A 0 1"
    assert rank_grid(Trace(3)).text == "3 ranks in 1 x 3\ngroups: none"


def run_of(*values: object) -> Run:
    return Run(len(values), list(values), [""] * len(values), Trace(len(values)))


def two_by_two() -> Run:
    return run_of(
        *({"dp": [r % 2, r % 2 + 2], "tp": [r // 2 * 2, r // 2 * 2 + 1]} for r in range(4))
    )


def test_mesh_has_dimension_panels_and_rows() -> None:
    picture = mesh_groups(two_by_two(), per_host=2, title="a mesh")
    assert picture.text.splitlines() == [
        "groups of each dimension, 2 ranks on a host:",
        "  dp: A 0 2 | B 1 3; 2 of 2 cross hosts",
        "  tp: A 0 1 | B 2 3; 0 of 2 cross hosts",
    ]
    dp, tp = picture.figure.axes
    assert dp.get_title() == "dp: 2 groups of 2"
    labels = {text.get_text(): text.get_position() for text in tp.texts}
    assert labels["3"][:1] == (1,) and round(labels["3"][1]) == 1
    assert [text.get_text() for text in dp.texts][1::2] == ["A · 0", "B · 0", "A · 1", "B · 1"]


def test_accepts_partial_host_and_single_groups() -> None:
    run = run_of({"tp": [0]}, {"tp": [1]}, {"tp": [2]})
    assert mesh_groups(run, per_host=2).text.endswith("tp: A 0 | B 1 | C 2; 0 of 3 cross hosts")


def test_finds_ranks_inside_larger_tuples() -> None:
    run = run_of(*({"tp": (r, [0, 1], 1, torch.ones(2))} for r in range(2)))
    assert lines_of(run) == {"tp": ((0, 1),)}


@pytest.mark.parametrize("value", [None, [0, 1], {}, {"tp": 3}, {"tp": torch.ones(2)}])
def test_explains_rejected_values(value: object) -> None:
    with pytest.raises(ValueError, match="must return its groups|are a list of numbers"):
        mesh_groups(run_of(value), per_host=2)


def test_refuses_row_without_ranks() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        rank_grid(GRID, cols=0)
    with pytest.raises(ValueError, match="at least one rank"):
        mesh_groups(two_by_two(), per_host=0)
