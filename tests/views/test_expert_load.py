"""An expert's bar is as long as its tokens, in parts by the rank that they came from."""

from __future__ import annotations

import pytest
import torch

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.expert_load import expert_load


def run_of(*values: object) -> Run:
    return Run(len(values), list(values), [""] * len(values), Trace(len(values)))


def test_the_text_tells_every_experts_tokens_and_where_they_came_from() -> None:
    picture = expert_load({"skewed": run_of(torch.tensor([3, 0]), torch.tensor([4, 1]))})
    assert picture.text.splitlines() == [
        "skewed: tokens of each expert (mean 4):",
        "  expert 0: 7 (3 from rank 0, 4 from rank 1)",
        "  expert 1: 1 (0 from rank 0, 1 from rank 1)",
    ]


def test_bars_are_stacked_and_their_sum_stands_behind_them() -> None:
    runs = {"one": run_of([3, 0, 2], [4, 1, 0]), "other": run_of([1, 1, 1], [1, 1, 1])}
    one, other = expert_load(runs).figure.axes
    ends = {(bar.get_y(), bar.get_x() + bar.get_width()) for bar in one.patches}
    assert max(end for _, end in ends) == 7
    assert [text.get_text() for text in one.texts] == ["7", "1", "2"]
    assert [text.get_text() for text in other.texts] == ["2", "2", "2"]
    assert one.get_xlim() == other.get_xlim()  # so that panels compare


@pytest.mark.parametrize("values", [([1, 2], [1]), (None, None), ([0.5], [1]), ([], [])])
def test_other_values_are_refused_in_words(values: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="must return"):
        expert_load({"x": run_of(*values)})


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        expert_load({})
