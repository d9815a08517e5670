"""Each panel shows the groups of one dimension; the text says which of them cross hosts."""

from __future__ import annotations

import pytest
import torch

from helpers.ranks.run import Run
from helpers.trace.events import Trace
from helpers.views.mesh_groups import lines_of, mesh_groups


def run_of(*values: object) -> Run:
    return Run(len(values), list(values), [""] * len(values), Trace(len(values)))


def two_by_two() -> Run:
    return run_of(
        *({"dp": [r % 2, r % 2 + 2], "tp": [r // 2 * 2, r // 2 * 2 + 1]} for r in range(4))
    )


def test_the_text_names_groups_and_those_that_cross_hosts() -> None:
    picture = mesh_groups(two_by_two(), per_host=2, title="a mesh")
    assert picture.text.splitlines() == [
        "groups of each dimension, 2 ranks on a host:",
        "  dp: A 0 2 | B 1 3; 2 of 2 cross hosts",
        "  tp: A 0 1 | B 2 3; 0 of 2 cross hosts",
    ]


def test_a_row_is_a_host_and_a_cell_tells_its_group_and_place() -> None:
    dp, tp = mesh_groups(two_by_two(), per_host=2).figure.axes
    assert dp.get_title() == "dp: 2 groups of 2"
    labels = {text.get_text(): text.get_position() for text in tp.texts}
    assert labels["3"][:1] == (1,) and round(labels["3"][1]) == 1
    assert [text.get_text() for text in dp.texts][1::2] == ["A · 0", "B · 0", "A · 1", "B · 1"]


def test_a_last_host_may_have_fewer_ranks_and_a_group_one() -> None:
    run = run_of({"tp": [0]}, {"tp": [1]}, {"tp": [2]})
    assert mesh_groups(run, per_host=2).text.endswith("tp: A 0 | B 1 | C 2; 0 of 3 cross hosts")


def test_ranks_may_stand_in_a_tuple_with_other_things() -> None:
    run = run_of(*({"tp": (r, [0, 1], 1, torch.ones(2))} for r in range(2)))
    assert lines_of(run) == {"tp": ((0, 1),)}


@pytest.mark.parametrize("value", [None, [0, 1], {}, {"tp": 3}, {"tp": torch.ones(2)}])
def test_other_values_are_refused_in_words(value: object) -> None:
    with pytest.raises(ValueError, match="must return its groups|are a list of numbers"):
        mesh_groups(run_of(value), per_host=2)


def test_a_host_has_ranks() -> None:
    with pytest.raises(ValueError, match="at least one rank"):
        mesh_groups(two_by_two(), per_host=0)
