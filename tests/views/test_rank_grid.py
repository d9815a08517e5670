from __future__ import annotations

import pytest

from helpers.trace.events import Trace
from helpers.views.rank_grid import panels_of, rank_grid
from tests.views.builders import event, ping_pong, trace_of_rows

GRID = [[0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5]]


def in_rows_and_columns() -> Trace:
    rows = []
    for rank in range(6):
        mine = [tuple(group) for group in GRID if rank in group]
        calls = [event(rank, n, "all_reduce", n, n + 1, group_ranks=g) for n, g in enumerate(mine)]
        rows.append(calls)
    return trace_of_rows(6, rows)


def test_groups_that_share_a_rank_stand_in_different_panels() -> None:
    assert panels_of([(0, 1), (0, 2), (2, 3), (1, 3)]) == (((0, 1), (2, 3)), ((0, 2), (1, 3)))


@pytest.mark.parametrize("what", [GRID, GRID[::-1], in_rows_and_columns()])
def test_rows_and_columns(what: Trace | list[list[int]]) -> None:
    picture = rank_grid(what)
    assert picture.text == (
        "6 ranks in 2 x 3\ngroups: A 0 1 2 | B 3 4 5\ngroups: A 0 3 | B 1 4 | C 2 5"
    )
    rows, columns = ([t.get_text() for t in axes.texts] for axes in picture.figure.axes)
    assert rows[8:10] == ["4", "B · 1"]
    assert columns[8:10] == ["4", "B · 1"]
    assert columns[6:8] == ["3", "A · 1"]


def test_a_rank_without_a_group_is_told_apart_without_color() -> None:
    (axes,) = rank_grid([[1, 3]], cols=4).figure.axes
    assert [t.get_text() for t in axes.texts][1::2] == ["no group", "A · 0", "no group", "A · 1"]
    frames = [patch for patch in axes.patches if patch.get_hatch() is None]
    assert [frame.get_linestyle() for frame in frames] == [":", "-", ":", "-"]


def test_groups_of_one_panel_differ_in_their_hatch() -> None:
    (axes,) = rank_grid([[0], [1], [2]]).figure.axes
    assert len({patch.get_hatch() for patch in axes.patches} - {None}) == 3


def test_the_whole_world_is_one_row() -> None:
    assert rank_grid(ping_pong()).text == "2 ranks in 1 x 2\ngroups: A 0 1"


def test_a_run_without_calls_has_no_groups() -> None:
    assert rank_grid(Trace(3)).text == "3 ranks in 1 x 3\ngroups: none"


def test_a_grid_has_columns() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        rank_grid(GRID, cols=0)
