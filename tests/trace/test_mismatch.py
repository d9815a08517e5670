"""Mismatched calls of the ranks, described in one sentence: a row for each kind, on hand-made traces."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.trace.events import Event, Place, Trace
from helpers.trace.mismatch import describe_mismatch, find_problem

LINE = Place("answer", 7, "f", "cell 3")


def call(rank: int, op: str = "all_reduce", shape: tuple[int, ...] = (3,), **more: Any) -> Event:
    given = {"nbytes": 4 * shape[0] if shape else 4, "dtype": "float32", "end_ns": 2, **more}
    return Event(rank, 0, op, op, "0", (0, 1), shapes=(shape,), start_ns=1, **given)


def message(sent: dict[str, Any], received: dict[str, Any]) -> list[Event]:
    return [call(0, "send", peer=1, **sent), call(1, "recv", peer=0, **received)]


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([call(0), call(1)], ""),
        (
            [call(0), call(1, "broadcast", root=0, where=LINE)],
            "rank 0 calls all_reduce, while rank 1 calls broadcast (cell 3, line 7).",
        ),
        (
            [call(0), call(1, shape=(4,))],
            "rank 0 calls all_reduce of 3 float32, while rank 1 calls all_reduce of 4 float32.",
        ),
        (
            [call(0, shape=()), call(1, shape=(), dtype="int32")],
            "rank 0 calls all_reduce of one float32, while rank 1 calls all_reduce of one int32.",
        ),
        # the parts that ranks pass to these calls may differ from rank to rank
        ([call(0, "all_to_all"), call(1, "all_to_all", shape=(4,))], ""),
        # a rank other than the root of a scatter passes no tensor
        ([call(0, "scatter", root=0), call(1, "scatter", root=0, shape=(9,))], ""),
        (message({}, {}), ""),
        (
            message({}, {"dtype": "float64", "end_ns": None, "where": LINE}),
            "rank 0 sends float32, but rank 1 receives into float64 (cell 3, line 7): the dtypes must be "
            "the same.",
        ),
        (
            message({"shape": (6, 2)}, {}),
            "rank 0 sends 6x2 float32, but rank 1 receives into 3 float32: the buffer must be at least "
            "as large as the message.",
        ),
        # a message that arrived whole in a larger buffer is right
        (message({}, {"shape": (9,)}), ""),
    ],
)
def test_describes_mismatch_in_one_sentence(events: list[Event], says: str) -> None:
    assert describe_mismatch(Trace(2, tuple(events))) == says


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([call(0, "broadcast", root=0), call(1, "broadcast", root=0)], None),
        ([call(0, "broadcast", root=0), call(1, "broadcast", root=1)], "root"),
        ([call(0), call(1, "barrier")], "op"),
        ([call(0), call(1, shape=(4,))], "shape"),
        ([call(0), call(1, dtype="int32")], "dtype"),
        ([call(0, "barrier"), call(1, "barrier", nbytes=0)], None),
    ],
)
def test_identifies_kind_of_mismatch(events: list[Event], problem: str | None) -> None:
    [collective] = Trace(2, tuple(events)).collectives()
    assert find_problem(collective) == problem
