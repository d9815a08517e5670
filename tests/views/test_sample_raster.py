from __future__ import annotations

import pytest
import torch

from helpers.views.sample_raster import repeated_samples, sample_raster


def test_text_lists_samples_and_repetitions() -> None:
    picture = sample_raster([[[0, 2, 4], [1, 3, 0]], [[4, 1, 3], [2, 0, 4]]])
    assert picture.text.splitlines() == [
        "epoch 0:",
        "  rank 0: 0 2 4",
        "  rank 1: 1 3 0",
        "  more than once: 0",
        "epoch 1:",
        "  rank 0: 4 1 3",
        "  rank 1: 2 0 4",
        "  more than once: 4",
    ]


def test_draws_panel_for_each_epoch() -> None:
    picture = sample_raster([[[0, 2], [1, 0]]] * 3, title="three epochs")
    panels = picture.figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["epoch 0", "epoch 1", "epoch 2"]
    for axes in panels:
        assert [text.get_text() for text in axes.texts] == ["0*", "2", "1", "0*"]
        assert len(axes.patches) == 4


@pytest.mark.extended
def test_draws_many_samples_and_empty_ranks() -> None:
    picture = sample_raster([[list(range(500)), []]])
    assert "and 476 more" in picture.text and "rank 1: nothing" in picture.text
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_counts_repeated_samples_over_ranks() -> None:
    assert repeated_samples([[3, 1], [1, 2], [3]]) == [1, 3]


@pytest.mark.parametrize("nothing", [[], [[]]])
def test_rejects_empty_input(nothing: list[list[list[int]]]) -> None:
    with pytest.raises(ValueError, match="one epoch and one rank"):
        sample_raster(nothing)


def test_accepts_sample_groups_and_column_names() -> None:
    picture = sample_raster([[[[4, 1], [0]], [[], [2]]]], columns=["job 0", "job 1"])
    assert picture.text.splitlines()[1:] == ["  rank 0: (4 1) (0)", "  rank 1: () (2)"]
    (axes,) = picture.figure.axes
    assert [text.get_text() for text in axes.texts] == ["4", "1", "0", "2"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["job 0", "job 1"]


def test_accepts_tensors_of_samples() -> None:
    lists = [[[0, 2], [1, 3]]]
    tensors = [[torch.tensor(own) for own in epoch] for epoch in lists]
    assert sample_raster(tensors).text == sample_raster(lists).text  # type: ignore[arg-type]
