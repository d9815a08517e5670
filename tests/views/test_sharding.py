"""Each element of a matrix shows the ranks that hold it, and the text lists them by rows and columns."""

from __future__ import annotations

import pytest
import torch

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.sharding import holders, sharding

WHOLE = torch.arange(24.0).view(4, 6)


def run_of_parts(*parts: object) -> Run:
    return Run(len(parts), list(parts), [""] * len(parts), Trace(len(parts)))


def test_distinguishes_rows_columns_and_copies() -> None:
    run = run_of_parts(
        *(
            {"rows": WHOLE.chunk(2)[r], "columns": WHOLE.chunk(2, dim=1)[r], "copy": WHOLE}
            for r in (0, 1)
        )
    )
    picture = sharding(dict.fromkeys(("rows", "columns", "copy"), WHOLE), run, title="parts")
    assert picture.text.splitlines() == [
        "who holds what:",
        "  rows: rank 0 rows 0-1; rank 1 rows 2-3",
        "  columns: rank 0 columns 0-2; rank 1 columns 3-5",
        "  copy: all 24 elements on every rank",
    ]
    drawn = [[text.get_text() for text in axes.texts] for axes in picture.figure.axes]
    assert drawn == [["0"] * 12 + ["1"] * 12, ["0", "0", "0", "1", "1", "1"] * 4, ["all"] * 24]
    assert len({tuple(patch.get_facecolor()) for patch in picture.figure.axes[0].patches}) == 2


def test_cells_have_equal_size_across_panels() -> None:
    run = run_of_parts({"weight": WHOLE, "bias": torch.arange(4.0)})
    picture = sharding({"weight": WHOLE, "bias": torch.arange(4.0)}, run)
    picture._repr_png_()
    weight, bias = (axes.patches[0].get_window_extent() for axes in picture.figure.axes)
    assert weight.width == pytest.approx(bias.width, rel=0.05)
    assert weight.height == pytest.approx(bias.height, rel=0.05)
    assert weight.width == pytest.approx(weight.height, rel=0.05)


def test_shows_scattered_missing_and_shared_elements() -> None:
    vector = torch.arange(5)
    run = run_of_parts({"v": vector[::2]}, {"v": vector[:2]}, None)
    assert holders("v", vector, run) == [[(0, 1), (1,), (0,), (), (0,)]]
    picture = sharding({"v": vector}, run)
    assert [text.get_text() for text in picture.figure.axes[0].texts] == ["0,1", "1", "0", "–", "0"]
    assert picture.text.endswith(
        "v: rank 0 elements 0, 2, 4; rank 1 elements 0-1; rank 2 no elements"
    )
    corner = run_of_parts({"m": WHOLE[:2, :2]}, {"m": WHOLE[3:]})
    assert sharding({"m": WHOLE}, corner).text.endswith("rank 0 4 of 24 elements; rank 1 row 3")


@pytest.mark.parametrize(
    ("whole", "value", "message"),
    [
        (torch.zeros(2, 2), {"w": torch.zeros(1)}, "occurs twice"),
        (torch.arange(8).view(2, 2, 2), {}, "3 dimensions"),
        (torch.arange(50), {}, "cannot be drawn"),
        (torch.arange(3), [1, 2], "must return a dict"),
    ],
)
def test_rejects_undrawable_tensors(whole: torch.Tensor, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sharding({"w": whole}, run_of_parts(value))


def test_rejects_empty_input() -> None:
    with pytest.raises(ValueError, match="at least one tensor"):
        sharding({}, run_of_parts({}))
