"""Rows of digits: who has which, in the picture and in words."""

from __future__ import annotations

import torch

from helpers.views.digit_rows import MOST_COLUMNS, digit_rows

IMAGES = torch.linspace(0, 1, 40 * 9).reshape(40, 9)
LABELS = torch.arange(40) % 10


def test_each_rank_has_a_row_with_its_images_and_labels() -> None:
    picture = digit_rows(IMAGES, LABELS, [[0, 2], [1, 13, 5]], title="a batch")
    assert picture.text == ("rank 0 has 2 samples: 0 2\nrank 1 has 3 samples: 1 3 5")
    drawn = [axes for axes in picture.figure.axes if axes.images]
    assert [axes.get_title() for axes in drawn] == ["0", "2", "1", "3", "5"]
    shown = torch.tensor(drawn[3].images[0].get_array()).float()
    assert shown.allclose(IMAGES[13].reshape(3, 3))
    names = [text.get_text() for axes in picture.figure.axes for text in axes.texts]
    assert names == ["rank 0", "rank 1"]


def test_a_long_row_is_cut_and_says_so() -> None:
    picture = digit_rows(IMAGES, LABELS, [list(range(30))])
    assert picture.text.startswith("rank 0 has 30 samples: 0 1 2") and picture.text.endswith(" ...")
    assert sum(bool(axes.images) for axes in picture.figure.axes) == MOST_COLUMNS


def test_a_rank_without_samples_and_no_rank_at_all() -> None:
    assert digit_rows(IMAGES, LABELS, [[3], []]).text.endswith("rank 1 has 0 samples")
    assert digit_rows(IMAGES, LABELS, []).text == ""
    assert digit_rows(IMAGES, LABELS, [[], []])._repr_png_().startswith(b"\x89PNG")
