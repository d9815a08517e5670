"""Calls are counted in the phase in which they were issued; a bar is as long as its bytes."""

from __future__ import annotations

import pytest

from helpers.trace.events import Trace
from helpers.views.traffic_ledger import calls_by_phase, traffic_ledger
from tests.views.builders import event, trace_of_rows


def a_step() -> Trace:
    return trace_of_rows(
        2,
        [
            [
                event(0, 0, "broadcast", 0, 1),
                event(0, 1, "span", 2, 10, call="forward", nbytes=0),
                event(0, 2, "all_reduce", 4, 12, nbytes=300),  # ends in backward
                event(0, 3, "span", 11, 30, call="backward", nbytes=0),
                event(0, 4, "all_reduce", 12, 14, nbytes=500),
                event(0, 5, "span", 15, 20, call="inner", nbytes=0),
                event(0, 6, "all_gather", 16, 17, nbytes=100),
                event(0, 7, "all_reduce", 21, None, nbytes=200),
                event(0, 8, "recv", 22, 23, peer=1, nbytes=7000),
            ],
            [event(1, 0, "span", 2, 10, call="forward", nbytes=0)],
        ],
    )


def test_assigns_call_to_innermost_issuing_span() -> None:
    found = calls_by_phase(a_step(), 0)
    assert {phase: [e.seq for e in calls] for phase, calls in found.items()} == {
        "forward": [2],
        "backward": [4, 7, 8],
        "inner": [6],
    }
    assert calls_by_phase(a_step(), 1) == {"forward": []}


def test_merges_repeated_phase() -> None:
    rows = [event(0, n, "span", 10 * n, 10 * n + 5, call="forward") for n in (0, 2)]
    calls = [event(0, n + 1, "all_reduce", 10 * n + 1, 10 * n + 2) for n in (0, 2)]
    trace = trace_of_rows(1, [[rows[0], calls[0], rows[1], calls[1]]])
    assert [e.seq for e in calls_by_phase(trace, 0)["forward"]] == [1, 3]


def test_text_counts_calls_without_receives() -> None:
    assert traffic_ledger({"mine": a_step()}).text.splitlines() == [
        "what rank 0 passes to calls:",
        "  mine: forward 1 all_reduce: 300 B; backward 2 all_reduces: 700 B",
    ]
    other = traffic_ledger({"mine": a_step()}, rank=1, phases=("forward", "step"))
    assert other.text.endswith("mine: forward nothing; step nothing")


def test_bars_have_part_for_each_call() -> None:
    (axes,) = traffic_ledger({"a": a_step(), "b": a_step()}, title="two").figure.axes
    assert [bar.get_width() for bar in axes.patches] == [300, 500, 200] * 2
    assert [bar.get_x() for bar in axes.patches] == [0, 0, 500] * 2
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["a   forward", "backward", "b   forward", "backward"]
    assert axes.get_xlim()[1] > 700


@pytest.mark.parametrize("runs", [{}, {"empty": Trace(2)}])
def test_draws_empty_ledgers(runs: dict[str, Trace]) -> None:
    assert traffic_ledger(runs)._repr_png_()
