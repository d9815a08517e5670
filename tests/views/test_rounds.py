from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.trace.events import Event, Trace
from helpers.views.one_port import port_rounds
from helpers.views.rounds import rounds
from tests.views.builders import event, ping_pong, ring, trace_of_rows


def sends(*peers: int, start: int = 0) -> list[tuple[str, int, int]]:
    return [("send", peer, start + n) for n, peer in enumerate(peers)]


def trace_of(*rows: list[tuple[str, int, int]]) -> Trace:
    """Make blocking calls from (op, peer, start) for each rank."""
    made = [
        [
            event(rank, seq, op, start, start + 1, peer=peer, world=len(rows))
            for seq, (op, peer, start) in enumerate(row)
        ]
        for rank, row in enumerate(rows)
    ]
    return trace_of_rows(len(rows), made)


def arrows(trace: Trace) -> list[list[tuple[int, int]]]:
    return [[(m.src, m.dst) for m in messages] for messages in port_rounds(trace)]


def test_sends_of_rank_need_separate_rounds() -> None:
    trace = trace_of(sends(1, 2), [("recv", 0, 0)], [("recv", 0, 0)])
    assert arrows(trace) == [[(0, 1)], [(0, 2)]]


def test_rounds_follow_receive_order_of_rank() -> None:
    trace = trace_of([("recv", 2, 0), ("recv", 1, 5)], sends(0), sends(0))
    assert arrows(trace) == [[(2, 0)], [(1, 0)]]


def test_forwarding_block_takes_next_round() -> None:
    trace = trace_of(sends(1), [("recv", 0, 0), ("send", 2, 5)], [("recv", 1, 0)])
    assert arrows(trace) == [[(0, 1)], [(1, 2)]]


def exchange(op_first: str) -> Trace:
    """Two ranks that issue a send and a recv, either of them first, and then wait for both."""
    rows: list[list[Event]] = []
    for rank in (0, 1):
        ops = ["send", "recv"] if op_first == "send" else ["recv", "send"]
        # the other's message has arrived (end) before this rank sends, but it has not waited for it
        rows.append(
            [
                replace(
                    event(rank, seq, op, 10 * seq, 10 * seq + 1, peer=1 - rank),
                    asynchronous=True,
                    wait_ns=30_000_000 + seq,
                )
                for seq, op in enumerate(ops)
            ]
        )
    return trace_of_rows(2, rows)


@pytest.mark.parametrize("first", ["send", "recv"])
def test_nonblocking_exchange_takes_one_round(first: str) -> None:
    assert arrows(exchange(first)) == [[(0, 1), (1, 0)]]


def test_blocking_exchange_takes_two_rounds() -> None:
    trace = trace_of([*sends(1), ("recv", 1, 5)], [("recv", 0, 0), ("send", 0, 5)])
    assert arrows(trace) == [[(0, 1)], [(1, 0)]]


def test_omits_unreceived_and_misaddressed_messages() -> None:
    assert port_rounds(trace_of(sends(1, 7, -1), [])) == ()


def test_mutual_waits_end_round_count() -> None:
    trace = trace_of([("recv", 1, 0), ("send", 1, 5)], [("recv", 0, 0), ("send", 0, 5)])
    assert arrows(trace) == []


def test_counts_rounds_of_ring() -> None:
    assert len(port_rounds(ring(4, 3))) >= 3


def test_text_lists_every_round() -> None:
    picture = rounds({"to and fro": ping_pong(2), "silent": Trace(3)})
    assert picture.text == (
        "to and fro: 2 ranks, 4 rounds\n  1: 0 → 1\n  2: 1 → 0\n  3: 0 → 1\n  4: 1 → 0\n"
        "silent: 3 ranks, 0 rounds"
    )
    panels = picture.figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["to and fro", "silent"]
    assert len(panels[0].texts) == 4  # an annotation for each arrow
    assert picture._repr_png_()


@pytest.mark.extended
def test_caps_number_of_listed_rounds() -> None:
    picture = rounds({"long": ping_pong(40)})
    assert picture.text.endswith("\n  … and 48 more")
    assert picture._repr_png_() == rounds({"long": ping_pong(40)})._repr_png_()


def test_rejects_empty_mapping_and_other_values() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        rounds({})
    with pytest.raises(TypeError, match="not from str"):
        rounds({"a": "trace"})  # type: ignore[dict-item]
