"""The distance of two trainings after each step, on a logarithmic axis."""

from __future__ import annotations

import pytest
import torch

from helpers.views.divergence import ZERO_DRAWN_AT, divergence


def weights(*numbers: float) -> list[torch.Tensor]:
    return [torch.tensor([0.5, number], dtype=torch.float64) for number in numbers]


def drawn_lines(picture: object) -> list[list[float]]:
    (axes,) = picture.figure.axes  # type: ignore[attr-defined]
    return [list(line.get_ydata()) for line in axes.lines]


def test_draws_largest_difference_after_each_step() -> None:
    picture = divergence({"alone": (weights(1, 1, 1), weights(1.5, 0, 1))})
    assert drawn_lines(picture) == [[0.5, 1.0, ZERO_DRAWN_AT]]
    assert picture.figure.axes[0].get_yscale() == "log"
    assert picture.text == "largest difference of a weight after each step:\n  alone: 3 steps"


def test_accepts_mixed_dtypes_and_draws_target() -> None:
    singles = [w.float() for w in weights(0.1, 0.2)]
    picture = divergence({"float32": (singles, weights(0.1, 0.2))}, target=1e-6, title="parity")
    (apart, target) = drawn_lines(picture)
    assert all(0 < difference < 1e-7 for difference in apart) and set(target) == {1e-6}
    assert [text.get_text() for text in picture.figure.axes[0].texts][1] == "allowed: 1e-06"


def test_many_pairs_have_legend_and_picture() -> None:
    names = [f"pair ${n}$" for n in range(9)]
    picture = divergence({name: (weights(1, 2), weights(2, 4)) for name in names})
    assert len(picture.figure.legends[0].get_texts()) == 9
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_draws_nothing_and_rejects_unequal_lengths() -> None:
    assert divergence({})._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="zip"):
        divergence({"uneven": (weights(1, 2), weights(1))})
