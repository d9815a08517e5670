from __future__ import annotations

from collections.abc import Sequence

import pytest

from helpers.exercises.nb14_pipeline_parallel.one_f_one_b import one_f_one_b_order
from helpers.trace.events import Event, Trace
from helpers.views.schedule import schedule
from helpers.views.schedule_times import idle_share, max_held, measured_lanes, order_of, plan_lanes
from tests.views.builders import event, trace_of_rows


def gpipe(stages: int, microbatches: int) -> list[list[str]]:
    order = [f"{kind}{i}" for kind in "FB" for i in range(microbatches)]
    return [order] * stages


def one_f_one_b(stages: int, microbatches: int) -> list[tuple[str, ...]]:
    return [one_f_one_b_order(rank, stages, microbatches) for rank in range(stages)]


def bubble(orders: Sequence[Sequence[str]], backward: float = 2.0) -> float:
    lanes = plan_lanes(orders, backward)
    return idle_share([[(piece.start, piece.end) for piece in lane] for lane in lanes])


def trace_of(*stages: str) -> Trace:
    """Return a trace whose ranks ran these actions, each 10 ms long, one after the other."""
    rows: list[list[Event]] = []
    for rank, actions in enumerate(stages):
        row = [
            event(rank, seq, "span", 10 * (seq + rank), 10 * (seq + rank) + 10, call=action)
            for seq, action in enumerate(actions.split())
        ]
        row.append(event(rank, len(row), "span", 500, 501, call="something else"))
        rows.append(row)
    return trace_of_rows(len(stages), rows)


@pytest.mark.parametrize("backward", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("microbatches", [1, 2, 5, 12])
@pytest.mark.parametrize("stages", [1, 2, 4, 7])
def test_gpipe_and_1f1b_match_bubble_formula(
    stages: int, microbatches: int, backward: float
) -> None:
    formula = (stages - 1) / (microbatches + stages - 1)
    assert bubble(gpipe(stages, microbatches), backward) == pytest.approx(formula)
    assert bubble(one_f_one_b(stages, microbatches), backward) == pytest.approx(formula)


@pytest.mark.parametrize(("stages", "microbatches"), [(1, 3), (4, 2), (4, 4), (4, 9)])
def test_gpipe_holds_more_microbatches_than_1f1b(stages: int, microbatches: int) -> None:
    assert {max_held(order) for order in gpipe(stages, microbatches)} == {microbatches}
    held = [max_held(order) for order in one_f_one_b(stages, microbatches)]
    assert held == [min(stages - rank, microbatches) for rank in range(stages)]


def test_actions_wait_for_their_dependencies() -> None:
    first, last = plan_lanes([["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]])
    assert [piece.start for piece in first] == [0, 1, 4, 7]
    assert [piece.start for piece in last] == [1, 2, 4, 5]


def test_rejects_orders_with_cyclic_waits() -> None:
    with pytest.raises(ValueError, match="stage 0 waits to run B0, stage 1 waits to run F1"):
        schedule({"turned round": ["F0 B0 F1 B1", "F0 F1 B0 B1"]})


def test_rank_may_have_several_stages() -> None:
    first, second = plan_lanes([["0F0", "2F0", "2B0", "0B0"], ["1F0", "3F0", "3B0", "1B0"]])
    assert [(piece.stage, piece.start) for piece in first] == [
        ("0", 0),
        ("2", 2),
        ("2", 6),
        ("0", 10),
    ]
    assert [(piece.stage, piece.start) for piece in second] == [
        ("1", 1),
        ("3", 3),
        ("3", 4),
        ("1", 8),
    ]
    picture = schedule({"two each": ["0F0 2F0 2B0 0B0", "1F0 3F0 3B0 1B0"]})
    assert str(picture).splitlines()[1] == "  rank 0 holds 2: 0F0 2F0 2B0 0B0"
    (axes,) = picture.figure.axes
    assert [text.get_text() for text in axes.texts] == ["0", "0'", "0'", "0"] * 2


def test_backward_may_have_two_halves() -> None:
    first, second = plan_lanes([["0F0", "0I0", "0W0"], ["1F0", "1I0", "1W0"]])
    assert [piece.start for piece in first] == [0, 3, 4]
    assert [piece.start for piece in second] == [1, 2, 3]
    assert max_held(["0F0", "0F1", "0I0", "0W0", "0I1", "0W1"]) == 2


def test_reports_ranks_with_impossible_actions() -> None:
    with pytest.raises(ValueError, match="rank 0 waits to run 0B0, rank 1 waits to run 1W0"):
        plan_lanes([["0F0", "0B0"], ["1F0", "1W0", "1I0"]])


@pytest.mark.parametrize("action", ["X0", "F", "F-1", "backward 0"])
def test_rejects_invalid_action_names(action: str) -> None:
    with pytest.raises(ValueError, match="not an action of a stage"):
        schedule({"odd": [["F0", action]]})


def test_plan_text_reports_bubble_and_microbatches() -> None:
    text = str(schedule({"tiny": ["F0 F1 B0 B1", "F0 B0 F1 B1"]}))
    assert text.splitlines() == [
        "tiny: bubble 33 % predicted",
        "  stage 0 holds 2: F0 F1 B0 B1",
        "  stage 1 holds 1: F0 B0 F1 B1",
    ]


def test_run_shows_predicted_and_measured_schedules() -> None:
    slow = trace_of("F0 F1 B0 B1", "F0 B0 F1 B1")
    picture = schedule({"mine": slow})
    assert [axes.get_title(loc="left").split(":")[0] for axes in picture.figure.axes] == [
        "mine, predicted",
        "mine, real",
    ]
    late = Trace(2, tuple(e for e in trace_of("F0 F1 B0 B1", "F0 B0 F1 B1")))
    assert str(picture) == str(schedule({"mine": late}))
    assert order_of(measured_lanes(slow)) == [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]


def test_measured_times_start_at_first_forward() -> None:
    first, second = measured_lanes(trace_of("F0 B0", "F0 B0"))
    assert [(piece.start, piece.end) for piece in first] == [(0, 10), (10, 20)]
    assert [(piece.start, piece.end) for piece in second] == [(10, 20), (20, 30)]


def test_rejects_run_without_stages() -> None:
    with pytest.raises(ValueError, match="none: no rank of this run recorded spans"):
        schedule({"none": Trace(2)})


def test_sanitizes_schedule_names() -> None:
    assert "\x1b" not in str(schedule({"a\x1b[31m$x$": ["F0 B0"]}))


@pytest.mark.parametrize("busy", [[], [[]], [[(1.0, 1.0)]]])
def test_empty_schedule_has_no_idle_share(busy: list[list[tuple[float, float]]]) -> None:
    assert idle_share(busy) == 0.0
