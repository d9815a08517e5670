"""Who started whom is drawn as it is reported, whatever the order of the report."""

from __future__ import annotations

import re

import pytest

from helpers.exercises.nb00_start_here.pictures import process_tree

PARENTS = {41: 40, 42: 41, 43: 41, 44: 41, 40: 7}
NAMES = {40: "kernel", 41: "rank server", 42: "rank 0", 43: "rank 1", 44: "rank 2"}


def boxes(parents: dict[int, int], names: dict[int, str]) -> dict[str, tuple[float, float]]:
    """Return the place of each name in the figure."""
    (axes,) = process_tree(parents, names).figure.axes
    return {text.get_text(): text.get_position() for text in axes.texts}


def test_the_text_is_indented_by_descent_and_holds_no_process_id() -> None:
    text = process_tree(PARENTS, NAMES).text
    assert text.splitlines() == [
        "tree of 5 processes:",
        "  kernel",
        "    rank server",
        "      rank 0",
        "      rank 1",
        "      rank 2",
    ]
    assert not re.search(r"\b4\d\b", text)


def test_children_stand_right_of_their_parent_and_from_top_to_bottom() -> None:
    at = boxes(PARENTS, NAMES)
    assert at["kernel"][0] < at["rank server"][0] < at["rank 0"][0] == at["rank 2"][0]
    assert at["rank 0"][1] < at["rank 1"][1] < at["rank 2"][1]
    assert at["rank server"][1] == at["rank 1"][1]
    assert "process 43" in at


def test_two_subtrees_do_not_share_a_row() -> None:
    parents = {2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 7: 3}
    at = boxes(parents, {pid: f"p{pid}" for pid in range(1, 8)})
    assert at["p4"][1] < at["p5"][1] < at["p6"][1] < at["p7"][1]
    assert at["p2"][1] < at["p1"][1] < at["p3"][1]


def test_a_process_with_an_unnamed_parent_begins_a_tree() -> None:
    text = process_tree({2: 1, 3: 99}, {1: "a", 2: "b", 3: "c"}).text
    assert text.splitlines()[1:] == ["  a", "    b", "  c"]


@pytest.mark.parametrize(
    ("parents", "names", "says"),
    [({}, {}, "no names"), ({1: 2, 2: 1}, {1: "a", 2: "b"}, "own ancestor")],
)
def test_what_is_no_tree_is_refused(
    parents: dict[int, int], names: dict[int, str], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        process_tree(parents, names)
