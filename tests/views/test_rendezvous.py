from __future__ import annotations

import pytest

from helpers.trace.events import Event, Trace
from helpers.views.rendezvous import rendezvous, steps_of
from tests.views.builders import event, ping_pong, trace_of_rows


def call(rank: int, seq: int, name: str, start: int, end: int | None) -> Event:
    return event(rank, seq, "span", start, end, call=name)


def meeting() -> Trace:
    """Rank 1 comes late: rank 0 waits for its address."""
    early = [
        call(0, 0, "set addr/0", 0, 1),
        call(0, 1, "wait addr/1", 1, 12),
        call(0, 2, "get addr/1", 12, 13),
    ]
    late = [call(1, 0, "set addr/1", 9, 10), call(1, 1, "get addr/0", 10, 11)]
    return trace_of_rows(2, [early, late])


def test_the_text_says_what_each_rank_wrote_and_read() -> None:
    assert rendezvous(meeting()).text == (
        "4 calls on the store; every key begins with addr/\n"
        "rank 0: set …0, get …1\n"
        "rank 1: set …1, get …0"
    )


def test_calls_are_drawn_in_the_order_in_which_they_ended() -> None:
    assert [(step.rank, step.op) for step in steps_of(meeting())] == [
        (0, "set"),
        (1, "set"),
        (1, "get"),
        (0, "wait"),
        (0, "get"),
    ]


def test_a_wait_shows_only_if_others_moved_meanwhile() -> None:
    (axes,) = rendezvous(meeting(), title="late").figure.axes
    assert [t.get_text() for t in axes.texts].count("waits") == 1
    assert axes.get_title(loc="left") == "late"
    short = meeting().select(lambda e: e.rank == 0)
    (axes,) = rendezvous(short).figure.axes
    assert "waits" not in [t.get_text() for t in axes.texts]


def test_other_spans_and_unfinished_calls_are_left_out() -> None:
    more = [call(0, 0, "compute", 0, 1), call(0, 1, "get addr/1", 1, None)]
    with pytest.raises(ValueError, match="recorded no calls on a store"):
        rendezvous(trace_of_rows(1, [more]))
    with pytest.raises(ValueError, match="recorded no calls on a store"):
        rendezvous(ping_pong())


def test_a_long_rendezvous_says_what_is_not_drawn() -> None:
    row = [call(0, n, f"set key/{n}", n, n + 1) for n in range(70)]
    assert rendezvous(trace_of_rows(1, [row])).text.endswith("not drawn: 10 calls")
