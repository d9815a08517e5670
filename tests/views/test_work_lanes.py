"""The lanes of workers: which stretches count as work, and what the picture says of itself."""

from __future__ import annotations

import pytest

from helpers.exercises.nb10_dataparallel_vs_ddp.pictures import join_stretches, work_lanes


def test_pieces_alike_are_one_stretch_of_work() -> None:
    assert join_stretches([0.0, 1.0, 2.0, 3.0]) == [(0.0, 3.0, True)]


def test_counts_a_piece_much_longer_than_the_others_as_waiting() -> None:
    stamps = [0.0, 1.0, 2.0, 12.0, 13.0, 14.0]
    assert join_stretches(stamps) == [(0.0, 2.0, True), (2.0, 12.0, False), (12.0, 14.0, True)]


def test_a_worker_that_did_nothing_has_no_stretch() -> None:
    assert join_stretches([]) == [] and join_stretches([3.0]) == []


def test_stamps_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="must rise"):
        join_stretches([1.0, 0.5])


def test_the_text_counts_lanes_and_holds_no_time() -> None:
    picture = work_lanes(
        {"threads": [[0.0, 0.1, 0.2], [0.0, 0.15, 0.3]], "processes": [[5.0, 5.1]]}
    )
    assert picture.text == (
        "threads: 2 lanes, at work and waiting\nprocesses: 1 lane, at work and waiting"
    )
    assert len(picture.figure.axes) == 2


def test_both_looks_are_drawn_and_time_begins_at_nought() -> None:
    (axes,) = work_lanes({"one": [[7.0, 7.001, 7.002, 7.012, 7.013]]}).figure.axes
    assert [bar.get_x() for bar in axes.patches] == pytest.approx([0.0, 2.0, 12.0])
    assert len({bar.get_facecolor() for bar in axes.patches}) == 2


def test_the_axis_reaches_to_the_end_of_the_longest_panel() -> None:
    panels = {"short": [[0.0, 0.001]], "long": [[3.0, 3.05, 3.1]], "middle": [[0.0, 0.01]]}
    ends = [axes.get_xlim()[1] for axes in work_lanes(panels).figure.axes]
    assert ends == pytest.approx([102.0] * 3)


def test_the_text_says_that_there_is_nothing_to_draw() -> None:
    assert "nothing is drawn" in work_lanes({}).text
