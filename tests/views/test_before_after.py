from __future__ import annotations

from typing import Any

import pytest
import torch

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.before_after import before_after


def run_of(*values: Any) -> Run:
    return Run(len(values), list(values), [""] * len(values), Trace(len(values)))


def t(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers)


def cells(run: Run) -> list[list[str]]:
    return [[text.get_text() for text in axes.texts] for axes in before_after(run).figure.axes]


def colors(run: Run) -> list[str]:
    """Return the color of each number's frame in the right panel; a hatched edge is not a frame."""
    frames = [p for p in before_after(run).figure.axes[1].patches if p.get_hatch() is None]
    return [str(frame.get_edgecolor()) for frame in frames]


def test_text_lists_values_before_and_after() -> None:
    run = run_of((t(0, 1), t(4, 6)), (t(4, 5), t(4, 6)))
    assert before_after(run, title="x").text == (
        "before → after\nrank 0: [0 1] → [4 6]\nrank 1: [4 5] → [4 6]"
    )
    assert cells(run) == [["0", "1", "4", "5"], ["4", "6", "4", "6"]]


def test_draws_lists_matrices_numbers_and_none() -> None:
    parts = [t(1, 2), t(3)]
    run = run_of((parts, None), (torch.arange(4).reshape(2, 2), 7), (None, [True, 2.5]))
    assert before_after(run).text.splitlines()[1:] == [
        "rank 0: [1 2], [3] → nothing",
        "rank 1: [[0 1] [2 3]] → [7]",
        "rank 2: nothing → [True], [2.5]",
    ]


def test_colors_numbers_by_original_rank() -> None:
    broadcast = run_of((t(1, 2), t(3, 4)), (t(3, 4), t(3, 4)))
    assert len(set(colors(broadcast))) == 1
    gathered = run_of((t(1, 2), t(1, 2, 3)), (t(3), None))
    assert len(set(colors(gathered))) == 2


def test_new_or_ambiguous_numbers_lack_color() -> None:
    run = run_of((t(1), t(9)), (t(2), t(5)), (t(5), t(5)), (t(5), t(1)))
    nine, other_five, own_five, _ = colors(run)
    assert nine == other_five != own_five
    bold = [text.get_weight() for text in before_after(run).figure.axes[1].texts]
    assert bold == ["bold", "bold", "normal", "normal"]


def test_hatches_distinguish_ranks_without_color() -> None:
    left, _ = before_after(run_of(*[(t(r), t(r)) for r in range(6)])).figure.axes
    assert len({patch.get_hatch() for patch in left.patches} - {None}) == 6


@pytest.mark.extended
def test_truncates_large_tensors_and_worlds() -> None:
    run = run_of(*[(torch.arange(100), torch.zeros(50, 3))] * 20)
    text = before_after(run).text
    assert text.count("…") == 12 * 2 + 1 and text.endswith("… and 8 more ranks")


def test_empty_tensors_have_no_cells() -> None:
    run = run_of((torch.empty(0), torch.empty(0, 3)))
    assert before_after(run).text.endswith("rank 0: [] → []")
    assert cells(run) == [["empty"], ["empty"]]


@pytest.mark.parametrize("value", [None, 7, t(1, 2), (t(1),), [t(1), t(2), t(3)]])
def test_rejects_values_other_than_pairs(value: Any) -> None:
    with pytest.raises(ValueError, match=r"rank 1 returned .* \(before, after\)"):
        before_after(run_of((1, 2), value))


def test_rank_text_cannot_break_picture() -> None:
    odd = run_of(("$x$ \x1b[31m red", float("nan")), ([None, "b" * 99], complex(1, 2)))
    assert before_after(odd)._repr_png_().startswith(b"\x89PNG")
    assert "\x1b" not in before_after(odd).text
