from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import FancyArrowPatch

from helpers.trace.events import Trace
from helpers.views.palette import KINDS
from helpers.views.picture import Picture
from helpers.views.sequence import fold, label_of
from helpers.views.step_lanes import step_lanes
from helpers.views.timeline import timeline
from helpers.views.timeline_labels import Wanted, place_labels
from helpers.views.timeline_layout import MOST_BARS, lay_out
from tests.views.builders import event, ping_pong, ring, run_of, trace_of_rows

PNG = b"\x89PNG\r\n\x1a\n"


def arrows(picture: Picture) -> list[FancyArrowPatch]:
    return [p for p in picture.figure.axes[0].patches if isinstance(p, FancyArrowPatch)]


def bars(picture: Picture) -> Counter[str]:
    """Count the drawn boxes by what the legend calls them."""
    counts: Counter[str] = Counter()
    for collection in picture.figure.axes[0].collections:
        if isinstance(collection, LineCollection):  # ticks at which thin bars begin
            continue
        assert isinstance(collection, PolyCollection)
        counts[str(collection.get_label())] += len(collection.get_paths())
    return counts


def legend(picture: Picture) -> list[str]:
    return [text.get_text() for box in picture.figure.legends for text in box.get_texts()]


def names(picture: Picture) -> list[str]:
    return [text.get_text() for text in picture.figure.axes[0].texts]


def test_two_ranks() -> None:
    picture = timeline(ping_pong(), title="ping-pong")
    assert picture.text == (
        "timeline of 2 ranks: 2 messages, 1 all_reduce\n"
        "rank 0: send→1, recv←1, all_reduce\n"
        "rank 1: recv←0, send→0, all_reduce"
    )
    assert repr(picture) == picture.text
    assert len(arrows(picture)) == 2
    assert bars(picture) == {"send": 2, "recv": 2, "collective": 2, "the same collective": 1}
    assert legend(picture) == ["send", "recv", "collective", "message", "the same collective"]
    assert Counter(names(picture))["send→1"] == 1 and len(names(picture)) == 6
    assert picture.figure.axes[0].get_xlabel() == "time since the first event [ms]"
    ticks = [t.get_text() for t in picture.figure.axes[0].get_yticklabels()]
    assert ticks == ["rank 0", "rank 1"]


def test_rank_zero_is_on_top_and_arrows_run_from_send_to_recv() -> None:
    picture = timeline(ping_pong())
    axes = picture.figure.axes[0]
    bottom, top = axes.get_ylim()
    assert bottom > top, "the axis runs downwards"
    assert axes.get_yticks()[0] < axes.get_yticks()[1]
    (down, up) = [arrow.get_path().vertices for arrow in arrows(picture)]
    assert down[0][1] < down[2][1] and up[0][1] > up[2][1]
    # The head's own line ends a hair before its tip.
    assert down[0][0] == 0 and down[2][0] == pytest.approx(4e6, rel=0.02)


def test_asynchronous_calls_are_thin_until_they_are_waited_for() -> None:
    rows = [
        [
            event(rank, 0, "send", 0, 9, peer=1 - rank, call="isend", asynchronous=True),
            event(rank, 1, "span", 1, 8, call="compute"),
        ]
        for rank in (0, 1)
    ]
    waited = trace_of_rows(2, rows)
    late = Trace(2, tuple(_with_wait(e, 8) if e.op == "send" else e for e in waited))
    assert bars(timeline(late)) == {
        "span": 2,
        "send": 2,
        "in flight, the rank is free (thick: it is held up)": 2,
    }
    never = Trace(2, tuple(_with_wait(e, None) if e.op == "send" else e for e in waited))
    assert bars(timeline(never))["send"] == 0
    assert "rank 0: isend→1, [compute]" in timeline(late).text
    assert "[compute]" in names(timeline(late))


def test_blocking_calls_are_thick_from_the_start() -> None:
    # The recorder sees the wait begin a little after the call.
    trace = Trace(2, tuple(_with_wait(e, e.end_ns / 1e6 - 1) for e in ping_pong()))
    assert bars(timeline(trace)) == bars(timeline(ping_pong()))


def _with_wait(e, at_ms):  # type: ignore[no-untyped-def]
    return replace(e, wait_ns=None if at_ms is None else int(at_ms * 1e6))


def test_calls_that_never_finished_run_to_the_right_edge() -> None:
    rows = [[event(r, 0, "recv", r, None, peer=(r - 1) % 4, world=4)] for r in range(4)]
    picture = timeline(trace_of_rows(4, rows))
    assert picture.text == (
        "timeline of 4 ranks: 4 recvs without a send\n"
        "rank 0: recv←3 (never finished)\n"
        "rank 1: recv←0 (never finished)\n"
        "rank 2: recv←1 (never finished)\n"
        "rank 3: recv←2 (never finished)"
    )
    assert legend(picture) == ["never finished"]
    assert names(picture).count("never finished") == 4
    axes = picture.figure.axes[0]
    edges = [path.vertices[:, 0].max() for path in axes.collections[0].get_paths()]
    assert edges == [axes.get_xlim()[1]] * 4


def test_mismatch_loss_failure_and_any_source_are_told() -> None:
    picture = timeline(
        trace_of_rows(
            3,
            [
                [event(0, 0, "all_reduce", 0, None, world=3)],
                [event(1, 0, "broadcast", 1, None, root=1, world=3)],
                [
                    event(2, 0, "recv", 0, 1, peer=None, world=3),
                    event(2, 1, "send", 2, 3, peer=0, tag=7, error="closed", world=3),
                ],
            ],
        )
    )
    assert picture.text == (
        "timeline of 3 ranks: 1 message (1 never received), "
        "1 all_reduce / broadcast not joined by all\n"
        "rank 0: all_reduce (never finished)\n"
        "rank 1: broadcast root 1 (never finished)\n"
        "rank 2: recv←any, send→0 tag 7 (failed)"
    )
    assert {"mismatched collectives", "failed", "message never received"} <= set(legend(picture))


def test_sixteen_ranks_and_hundreds_of_calls() -> None:
    trace = ring()
    picture = timeline(trace)
    lines = picture.text.splitlines()
    assert lines[0] == "timeline of 16 ranks: 240 messages, 1 all_reduce"
    assert lines[1] == "rank  0: (send→1, recv←15) ×15, all_reduce"
    assert len(lines) == 17
    assert len(arrows(picture)) == 240
    assert bars(picture)["the same collective"] == 15
    assert names(picture).count("all_reduce") == 1, "one name for a collective of many ranks"
    assert picture.figure.get_figheight() < 15
    assert picture._repr_png_().startswith(PNG)


@pytest.mark.parametrize("trace", [ping_pong(), ping_pong(3), ring(8, 3), ring(16, 15)])
def test_names_cover_neither_each_other_nor_leave_the_picture(trace: Trace) -> None:
    picture = timeline(trace)
    canvas = FigureCanvasAgg(picture.figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in picture.figure.axes[0].texts]
    edge = picture.figure.bbox
    for n, box in enumerate(boxes):
        assert edge.x0 <= box.x0 and box.x1 <= edge.x1
        assert not [other for other in boxes[n + 1 :] if _cover(box, other)]


def _cover(a, b) -> bool:  # type: ignore[no-untyped-def]
    wide = min(a.x1, b.x1) - max(a.x0, b.x0)
    high = min(a.y1, b.y1) - max(a.y0, b.y0)
    return bool(wide > 1 and high > 2)


def test_the_same_trace_gives_the_same_text_and_the_same_bytes() -> None:
    first, second = timeline(ping_pong()), timeline(ping_pong())
    assert first.text == second.text
    assert first._repr_png_() == second._repr_png_()
    slower = Trace(2, tuple(replace(e, start_ns=e.start_ns * 3) for e in ping_pong()))
    assert timeline(slower).text == first.text, "no times in the text"


def test_hostile_traces_are_drawn() -> None:
    huge = 2**70
    rows = [
        event(0, 0, "send", 5, 1, peer=99, call="$\\frac{$<b>\x00\n" + "x" * 10_000),
        event(0, 1, "send", -(2**40), huge, peer=0),
        event(0, 2, "recv", 3, None, peer=-4, nbytes=huge),
        event(0, 3, "nonsense", 3, 4, peer=None),
        event(0, 4, "send", 0, 1, peer=None),
        event(7, 0, "send", 0, 1, peer=0),
        event(-1, 0, "all_reduce", 0, 1),
        event(1, 0, "span", 0, -5, call="$x$" * 100),
    ]
    picture = timeline(trace_of_rows(2, [rows]), title="$\\bad{ <b>" + "y" * 1000)
    assert picture._repr_png_().startswith(PNG)
    assert "not drawn: 2 calls of 8" in picture.text
    assert max(map(len, picture.text.splitlines())) < 400
    assert "\x00" not in picture.text


def test_what_is_drawn_is_capped_and_the_text_says_so() -> None:
    picture = timeline(ping_pong(1000))
    assert sum(n for name, n in bars(picture).items() if name in {"send", "recv"}) == MOST_BARS
    assert len(arrows(picture)) == 500
    assert picture.text.splitlines() == [
        "timeline of 2 ranks: 2,000 messages, 1 all_reduce",
        "rank 0: (send→1, recv←1) ×1000, all_reduce",
        "rank 1: (recv←0, send→0) ×1000, all_reduce",
        "not drawn: 2,002 calls of 4,002",
        "drawn without an arrow: 1,500 messages",
    ]


def test_calls_that_were_never_recorded_are_told() -> None:
    text = timeline(Trace(2, (), dropped=3)).text
    assert text == "timeline of 2 ranks: no calls\nnot recorded: 3 calls beyond the trace's limit"


def test_a_run_is_drawn_like_its_trace_and_nothing_else_is() -> None:
    assert timeline(run_of(["", ""])).text == "timeline of 2 ranks: no calls"
    assert timeline(run_of(["", ""]))._repr_png_().startswith(PNG)
    with pytest.raises(TypeError, match="from a Run or its trace, not from list"):
        timeline([1, 2])  # type: ignore[arg-type]


def test_repeats_are_folded() -> None:
    assert fold(list("aaab")) == [("a ×3", 3), ("b", 1)]
    assert fold(list("ababab")) == [("(a, b) ×3", 6)]
    assert fold(list("ababcababc")) == [("((a, b) ×2, c) ×2", 10)]
    assert fold([]) == []
    text = timeline(
        trace_of_rows(2, [[event(0, n, "send", n, n, peer=1, tag=n * n) for n in range(200)]])
    ).text
    assert text.endswith("more calls") and len(text.splitlines()[1]) < 300


def test_overlapping_calls_of_a_rank_get_rows_of_their_own() -> None:
    row = [event(0, n, "send", n, 10 + n, peer=1, asynchronous=True) for n in range(5)]
    layout = lay_out(trace_of_rows(2, [row, [event(1, 0, "recv", 0, 1, peer=0)]]))
    assert [bar.row for bar in layout.bars if bar.rank == 0][:3] == [0, 1, 2]
    assert layout.call_rows == 3 and layout.span_rows == 0


def test_labels_make_room_for_each_other_or_stay_away() -> None:
    side_by_side = [Wanted(0, x, 10, 10, str(x)) for x in (0, 2, 4)]
    levels = {label.of.text: label.level for label in place_labels(side_by_side, 3, 100)}
    assert levels == {"4": 0, "2": 1, "0": 2}
    assert len(place_labels(side_by_side, 1, 100)) == 1
    crowd = [Wanted(0, x, 10, 1, str(x)) for x in range(100)]
    assert place_labels(crowd, 3, 100) == ()


def test_labels_name_peer_root_and_tag() -> None:
    assert label_of(event(0, 0, "send", 0, 1, peer=1, call="isend")) == "isend→1"
    assert label_of(event(0, 0, "recv", 0, 1, peer=None)) == "recv←any"
    assert label_of(event(0, 0, "recv", 0, 1, peer=2, tag=5)) == "recv←2 tag 5"
    assert label_of(event(0, 0, "reduce", 0, 1, root=0)) == "reduce root 0"


def test_kinds_can_be_told_apart_without_color() -> None:
    for attribute in ("color", "hatch", "marker", "line"):
        assert len({getattr(look, attribute) for look in KINDS}) == len(KINDS), attribute
    drawn = {
        (c.get_hatch(), c.get_label())
        for c in timeline(ping_pong()).figure.axes[0].collections
        if c.get_label() != "the same collective"
    }
    assert len({hatch for hatch, _ in drawn}) == len(drawn) == 3


def test_a_profile_is_drawn_as_a_run_is() -> None:
    def of(rank: int) -> dict[str, Any]:
        labels = (("forward", 0.0, 4.0), ("backward", 5.0, 9.0), ("gloo:all_reduce", 6.0, 7.0))
        events = [
            {"ph": "X", "cat": "user_annotation", "name": name, "ts": ts, "dur": dur}
            for name, ts, dur in labels
        ]
        return {"distributedInfo": {"rank": rank}, "traceEvents": events}

    picture = timeline([of(0), of(1)])
    assert picture.text == (
        "timeline of 2 ranks: 1 all_reduce, 4 spans\n"
        "rank 0: [forward], [backward], all_reduce\n"
        "rank 1: [forward], [backward], all_reduce"
    )
    assert bars(picture)["span"] == 4
    assert "in flight (a profile does not say who waits)" in legend(picture)
    ticks = [c for c in picture.figure.axes[0].collections if isinstance(c, LineCollection)]
    assert [len(tick.get_paths()) for tick in ticks] == [2], "a tick where each bar begins"
    lanes = step_lanes({"mine": [of(0), of(1)]})
    assert lanes.text.endswith("mine: 1 all_reduce, 1 issued while backward runs")
