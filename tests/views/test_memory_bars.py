"""A bar for each rank shows its memory, and the text gives the same numbers in bytes."""

from __future__ import annotations

import pytest

from helpers.views.memory_bars import memory_bars

HELD = {
    "whole": [{"weights": 400, "state": 800}] * 2,
    "sharded": [{"weights": 400, "state": 410}, {"weights": 400, "state": 390}],
}
PREDICTED = {"whole": [1200, 1200], "sharded": [800, 800]}


def test_stacks_bars_in_rank_order() -> None:
    (axes,) = memory_bars(HELD).figure.axes
    assert [bar.get_width() for bar in axes.patches] == [400] * 4 + [800, 800, 410, 390]
    assert [bar.get_x() for bar in axes.patches] == [0] * 4 + [400] * 4
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["whole   rank 0", "rank 1", "sharded   rank 0", "rank 1"]
    bottom, top = axes.get_ylim()
    assert bottom > top


def test_draws_predicted_size_as_line() -> None:
    (axes,) = memory_bars(HELD, predicted=PREDICTED).figure.axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[1200] * 2] * 2 + [[800] * 2] * 2
    assert [text.get_text() for text in axes.texts] == ["1.2 kB", "1.2 kB", "810 B", "790 B"]
    assert axes.get_xlim()[1] > 1200


def test_text_lists_every_number() -> None:
    assert memory_bars(HELD, predicted={"sharded": [800, 800]}).text.splitlines() == [
        "bytes held by each rank:",
        "  whole, rank 0: weights 400, state 800; 1,200 in total",
        "  whole, rank 1: weights 400, state 800; 1,200 in total",
        "  sharded, rank 0: weights 400, state 410; 810 in total; predicted 800",
        "  sharded, rank 1: weights 400, state 390; 790 in total; predicted 800",
    ]


def test_partly_missing_parts_keep_their_place() -> None:
    (axes,) = memory_bars({"a": [{"x": 1}], "b": [{"x": 1, "y": 2}]}, title="parts").figure.axes
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [
        (0, 1),
        (0, 1),
        (1, 0),
        (1, 2),
    ]


@pytest.mark.parametrize("held", [{}, {"a": []}, {"a": [{str(n): 1 for n in range(6)}]}])
def test_rejects_empty_or_excessive_parts(held: dict[str, list[dict[str, int]]]) -> None:
    with pytest.raises(ValueError, match="kinds of parts"):
        memory_bars(held)
