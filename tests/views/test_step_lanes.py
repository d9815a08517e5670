from __future__ import annotations

from collections.abc import Sequence

import pytest

from helpers.trace.events import Event, Trace
from helpers.views.step_lanes import last_step, step_lanes
from tests.views.builders import event, trace_of_rows

Row = Sequence[tuple[str, str, int, int | None]]

STEP: Row = (("span", "forward", 0, 2), ("span", "backward", 2, 8), ("span", "step", 20, 21))


def trace_of(*calls: tuple[int, int | None], before: Row = ()) -> Trace:
    """Return a trace of one rank: earlier spans, then a step with all_reduces at these times."""
    row = [*before, *STEP, *(("all_reduce", "all_reduce", *times) for times in calls)]
    row.sort(key=lambda each: each[2])
    events: list[Event] = [
        event(0, seq, op, start, end, call=call) for seq, (op, call, start, end) in enumerate(row)
    ]
    return trace_of_rows(1, [events])


def test_text_counts_calls_issued_during_backward() -> None:
    late, early = trace_of((9, 12), (12, 15)), trace_of((3, 12), (7, 15), (9, 16))
    text = str(step_lanes({"late": late, "early": early}))
    assert "late: 2 all_reduces, 0 issued while backward runs" in text
    assert "early: 3 all_reduces, 2 issued while backward runs" in text


def test_draws_only_last_step() -> None:
    before: Row = (("span", "forward", -20, -18), ("all_reduce", "all_reduce", -15, -12))
    step = last_step(trace_of((3, 5), before=before), 0, "forward")
    assert step is not None
    assert [span.call for span in step.spans] == ["forward", "backward", "step"]
    assert len(step.calls) == 1


def test_omits_rank_without_steps() -> None:
    nothing = Trace(1)
    text = str(step_lanes({"nothing": nothing, "a step": trace_of((3, 5))}))
    assert "a step" in text and "nothing" not in text
    assert str(step_lanes({"nothing": nothing})) == "one step of rank 0:"


@pytest.mark.parametrize("calls", [1, 13, 60])
def test_draws_overlapping_calls_inside_lane(calls: int) -> None:
    trace = trace_of(*[(3, 30)] * calls, (4, None))
    picture = step_lanes({"many": trace})
    (axes,) = picture.figure.axes
    bottom, top = axes.get_ylim()
    for bars in axes.collections:
        box = bars.get_datalim(axes.transData)
        assert top <= box.y0 and box.y1 <= bottom


@pytest.mark.parametrize("forward, backward", [(2, 8), (20, 21), (1, 2), (5, 9), (12, 14)])
def test_labels_overlap_only_own_boxes(forward: int, backward: int) -> None:
    row: Row = (
        ("span", "forward", 0, forward),
        ("span", "backward", forward, backward),
        ("span", "step", 22, 23),
        ("span", "zero_grad", 23, 40),
    )
    events = [
        event(0, k, op, start, end, call=call) for k, (op, call, start, end) in enumerate(row)
    ]
    figure = step_lanes({"a": trace_of_rows(1, [events]), "b": trace_of((3, 5))}).figure
    figure.canvas.draw()
    (axes,) = figure.axes
    labels = [text.get_window_extent() for text in axes.texts]
    shapes = [bars.get_datalim(axes.transData) for bars in axes.collections if bars.zorder == 3]
    boxes = [axes.transData.transform_bbox(shape) for shape in shapes]
    for index, label in enumerate(labels):
        assert not any(label.overlaps(other) for other in labels[index + 1 :])
        for box in boxes:
            inside = box.x0 <= label.x0 and label.x1 <= box.x1
            assert inside or not label.overlaps(box)


def test_escapes_and_shortens_names_of_spans() -> None:
    text = str(step_lanes({"a\x1b[31m$x$": trace_of((3, 5))}, title="$\\frac$"))
    assert "\x1b" not in text
