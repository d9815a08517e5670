from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest

from helpers.trace.events import Trace
from helpers.views.drawing import Area, Box, Drawing, Line, Mark, Word
from helpers.views.palette import KINDS
from helpers.views.picture import Picture
from helpers.views.sequence import fold_repetitions, label_of
from helpers.views.step_lanes import step_lanes
from helpers.views.timeline import timeline
from helpers.views.timeline_layout import (
    BEGINS,
    ENDS,
    MAX_BARS,
    WAITS,
    compute_layout,
    playback_steps,
)
from tests.views.builders import event, ping_pong, ring, run_of, trace_of_rows

PNG = b"\x89PNG\r\n\x1a\n"


def drawing(picture: Picture) -> Drawing:
    assert isinstance(picture.figure, Drawing)
    return picture.figure


def arrows(picture: Picture) -> list[Line]:
    return [m for m in drawing(picture).marks if isinstance(m, Line) and m.style == "line"]


def bars(picture: Picture) -> Counter[str]:
    """Count bars and ribbons by their kind and style."""
    return Counter(
        f"{mark.look.name} {mark.style}"
        for mark in drawing(picture).marks
        if isinstance(mark, Box | Area) and mark.look
    )


def legend(picture: Picture) -> list[str]:
    """Return the legend below the lanes, which lists the kinds of marks."""
    below = dict(drawing(picture).about)["bottom"]
    words = [m for m in drawing(picture).fixed if isinstance(m, Word) and m.points[0][1] > below]
    return [word.text for word in words]


def names(picture: Picture) -> list[str]:
    """Return the names next to bars, in any order."""
    return [m.text for m in drawing(picture).marks if isinstance(m, Word) and m.mono]


def ends(mark: Mark) -> tuple[float, float]:
    return mark.points[0][0], mark.points[1][0]


def test_draws_two_ranks_as_text() -> None:
    picture = timeline(ping_pong(), title="ping-pong")
    assert picture.text == (
        "timeline of 2 ranks: 2 messages, 1 all_reduce\n"
        "rank 0: send→1, recv←1, all_reduce\n"
        "rank 1: recv←0, send→0, all_reduce"
    )
    assert repr(picture) == picture.text
    assert len(arrows(picture)) == 2
    assert bars(picture) == {
        "send tint": 2,
        "recv tint": 2,
        "collective tint": 2,
        "collective ribbon": 1,
    }
    assert legend(picture) == [
        *("send", "recv", "collective", "message", "the same collective"),
        "not to scale: all steps have room",
    ]
    assert Counter(names(picture))["send→1"] == 1 and len(names(picture)) == 6
    fixed = [m.text for m in drawing(picture).fixed if isinstance(m, Word)]
    assert fixed[:3] == ["ping-pong", "rank 0", "rank 1"]
    times = [m.text for m in drawing(picture).marks if isinstance(m, Word) and m.style == "quiet"]
    assert times[0] == "0" and "10 ms" in times


def test_orders_ranks_and_connects_messages() -> None:
    picture = timeline(ping_pong())
    down, up = arrows(picture)
    assert down.points[0][1] < down.points[1][1] and up.points[0][1] > up.points[1][1]
    send, recv = (m for m in drawing(picture).marks[3:5] if isinstance(m, Box))
    assert ends(down) == (ends(send)[0], pytest.approx(ends(recv)[1] + 1))
    assert down.at == (send.at[0], recv.at[1]) and down.head


def test_playback_spaces_steps_by_duration() -> None:
    slow = [
        event(0, 0, "send", 0, 1, peer=1),
        event(0, 1, "span", 1, 2),
        event(0, 2, "span", 2, 900),
    ]
    layout = compute_layout(trace_of_rows(1, [slow]))
    steps = playback_steps(layout)
    assert [what for _, what, _ in steps.moments] == [BEGINS, BEGINS, ENDS, BEGINS, ENDS, ENDS]
    gaps = [b - a for a, b in zip((0.0, *steps.at), steps.at, strict=False)]
    assert min(gaps) > 0.05 and max(gaps) == gaps[5] > 4 * gaps[4]
    assert steps.at[-1] == pytest.approx(1)


def test_unfinished_and_unwaited_calls_have_steps() -> None:
    calls = [
        event(0, 0, "send", 0, 9, peer=1, asynchronous=True),
        event(0, 1, "send", 1, None, peer=1, asynchronous=True),
        event(0, 2, "send", 2, 8, peer=1, asynchronous=True),
    ]
    calls = [
        replace(e, wait_ns=wait) for e, wait in zip(calls, (None, None, 5_000_000), strict=True)
    ]
    steps = playback_steps(compute_layout(trace_of_rows(1, [calls])))
    assert [what for _, what, _ in steps.moments] == [BEGINS, BEGINS, BEGINS, WAITS, ENDS, ENDS]
    assert steps.begin == (0, 1, 2) and steps.end == (5, 6, 4)
    assert steps.wait == (5, 1, 3)


def test_asynchronous_calls_stay_thin_until_waited() -> None:
    rows = [
        [
            event(rank, 0, "send", 0, 9, peer=1 - rank, call="isend", asynchronous=True),
            event(rank, 1, "span", 1, 8, call="compute"),
        ]
        for rank in (0, 1)
    ]
    waited = trace_of_rows(2, rows)
    late = Trace(2, tuple(_with_wait(e, 8) if e.op == "send" else e for e in waited))
    assert bars(timeline(late)) == {"span tint": 2, "send tint": 2, "send solid": 2}
    assert "thin: in flight; the rank can do other work" in legend(timeline(late))
    never = Trace(2, tuple(_with_wait(e, None) if e.op == "send" else e for e in waited))
    assert bars(timeline(never))["send tint"] == 0
    assert "rank 0: isend→1, [compute]" in timeline(late).text
    assert "[compute]" in names(timeline(late))


def test_blocking_calls_begin_with_thick_bar() -> None:
    # The recorder sees the wait begin a little after the call.
    trace = Trace(2, tuple(_with_wait(e, e.end_ns / 1e6 - 1) for e in ping_pong()))
    assert bars(timeline(trace)) == bars(timeline(ping_pong()))


def _with_wait(e, at_ms):  # type: ignore[no-untyped-def]
    return replace(e, wait_ns=None if at_ms is None else int(at_ms * 1e6))


def test_unfinished_calls_reach_right_edge() -> None:
    rows = [[event(r, 0, "recv", r, None, peer=(r - 1) % 4, world=4)] for r in range(4)]
    picture = timeline(trace_of_rows(4, rows))
    assert picture.text == (
        "timeline of 4 ranks: 4 recvs without a send\n"
        "rank 0: recv←3 (never finished)\n"
        "rank 1: recv←0 (never finished)\n"
        "rank 2: recv←1 (never finished)\n"
        "rank 3: recv←2 (never finished)"
    )
    assert legend(picture)[0] == "never finished"
    assert names(picture).count("never finished") == 4
    boxes = [m for m in drawing(picture).marks if isinstance(m, Box)]
    assert [box.at[1] for box in boxes] == [4] * 4, "the step after the last one"
    assert len({ends(box)[1] for box in boxes}) == 1 and {box.style for box in boxes} == {"open"}


def test_shows_mismatches_losses_failures_and_wildcards() -> None:
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
    assert {"mismatched collectives", "✕ failed", "message never received"} <= set(legend(picture))


def test_draws_sixteen_ranks_with_many_calls() -> None:
    trace = ring()
    picture = timeline(trace)
    lines = picture.text.splitlines()
    assert lines[0] == "timeline of 16 ranks: 240 messages, 1 all_reduce"
    assert lines[1] == "rank  0: (send→1, recv←15) ×15, all_reduce"
    assert len(lines) == 17
    assert len(arrows(picture)) == 240
    assert bars(picture)["collective ribbon"] == 15
    assert drawing(picture).height < 900
    assert picture._repr_png_().startswith(PNG)


def test_lanes_of_many_ranks_are_low() -> None:
    whole = drawing(timeline(ring(200, 1)))
    assert whole.height < 2000
    boxes = [mark for mark in whole.marks if isinstance(mark, Box)]
    assert min(box.points[1][1] - box.points[0][1] for box in boxes) > 1
    names = [m for m in whole.fixed if isinstance(m, Word) and m.text.startswith("rank")]
    assert names[0].text == "rank 0" and len(names) < 200
    assert names[1].points[0][1] - names[0].points[0][1] > 12


def test_bar_names_fit_before_next_bar() -> None:
    few, many = drawing(timeline(ping_pong())), drawing(timeline(ping_pong(40)))
    assert _hidden(few) == 0
    assert _hidden(many) > 0, "a page shows them when it is zoomed in"
    shown = [w for w in many.marks if isinstance(w, Word) and w.mono and w.fits]
    for a, b in combinations(shown, 2):
        if a.points[0][1] == b.points[0][1]:
            left, right = sorted((a, b), key=lambda word: word.points[0][0])
            assert left.points[0][0] + left.width <= right.points[0][0]


def _hidden(whole: Drawing) -> int:
    return sum(isinstance(mark, Word) and not mark.fits for mark in whole.marks)


def test_same_trace_gives_identical_output() -> None:
    first, second = timeline(ping_pong()), timeline(ping_pong())
    assert first.text == second.text
    assert first._repr_png_() == second._repr_png_()
    slower = Trace(2, tuple(replace(e, start_ns=e.start_ns * 3) for e in ping_pong()))
    assert timeline(slower).text == first.text, "no times in the text"


def test_draws_hostile_traces() -> None:
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


def test_caps_drawing_and_reports_omissions() -> None:
    picture = timeline(ping_pong(1000))
    assert sum(n for name, n in bars(picture).items() if name.endswith("tint")) == MAX_BARS
    assert len(arrows(picture)) == 500
    assert picture.text.splitlines() == [
        "timeline of 2 ranks: 2,000 messages, 1 all_reduce",
        "rank 0: (send→1, recv←1) ×1000, all_reduce",
        "rank 1: (recv←0, send→0) ×1000, all_reduce",
        "not drawn: 2,002 calls of 4,002",
        "drawn without an arrow: 1,500 messages",
    ]


def test_reports_number_of_unrecorded_calls() -> None:
    text = timeline(Trace(2, (), dropped=3)).text
    assert text == "timeline of 2 ranks: no calls\nnot recorded: 3 calls beyond the trace's limit"


def test_draws_runs_and_rejects_other_values() -> None:
    assert timeline(run_of(["", ""])).text == "timeline of 2 ranks: no calls"
    assert timeline(run_of(["", ""]))._repr_png_().startswith(PNG)
    with pytest.raises(TypeError, match="from a Run or its trace, not from list"):
        timeline([1, 2])  # type: ignore[arg-type]


def test_folds_repeated_calls_in_text() -> None:
    assert fold_repetitions(list("aaab")) == [("a ×3", 3), ("b", 1)]
    assert fold_repetitions(list("ababab")) == [("(a, b) ×3", 6)]
    assert fold_repetitions(list("ababcababc")) == [("((a, b) ×2, c) ×2", 10)]
    assert fold_repetitions([]) == []
    text = timeline(
        trace_of_rows(2, [[event(0, n, "send", n, n, peer=1, tag=n * n) for n in range(200)]])
    ).text
    assert text.endswith("more calls") and len(text.splitlines()[1]) < 300


def test_overlapping_calls_use_separate_rows() -> None:
    row = [event(0, n, "send", n, 10 + n, peer=1, asynchronous=True) for n in range(5)]
    layout = compute_layout(trace_of_rows(2, [row, [event(1, 0, "recv", 0, 1, peer=0)]]))
    assert [bar.row for bar in layout.bars if bar.rank == 0][:3] == [0, 1, 2]
    assert layout.call_rows == 3 and layout.span_rows == 0


def test_labels_contain_peer_root_and_tag() -> None:
    assert label_of(event(0, 0, "send", 0, 1, peer=1, call="isend")) == "isend→1"
    assert label_of(event(0, 0, "recv", 0, 1, peer=None)) == "recv←any"
    assert label_of(event(0, 0, "recv", 0, 1, peer=2, tag=5)) == "recv←2 tag 5"
    assert label_of(event(0, 0, "reduce", 0, 1, root=0)) == "reduce root 0"


def test_distinguishes_kinds_without_color() -> None:
    for attribute in ("color", "hatch", "marker", "line"):
        assert len({getattr(look, attribute) for look in KINDS}) == len(KINDS), attribute
    assert len({look.color for look in KINDS}) == len(KINDS)


def test_draws_profile_like_run() -> None:
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
    assert bars(picture)["forward tint"] == bars(picture)["backward tint"] == 2
    assert "in flight (a profile does not say who waits)" in legend(picture)
    lanes = step_lanes({"mine": [of(0), of(1)]})
    assert lanes.text.endswith("mine: 1 all_reduce, 1 issued while backward runs")


def test_drawing_marks_carry_steps_and_description() -> None:
    picture = timeline(ring(4, 2), title="<ring> & co")
    svg = ElementTree.fromstring(drawing(picture).svg(picture.text))
    space = "{http://www.w3.org/2000/svg}"
    assert svg.get("role") == "img" and str(svg.get("aria-label")).split() == picture.text.split()
    last = len(playback_steps(compute_layout(ring(4, 2))).moments)
    moving = next(g for g in svg.iter(f"{space}g") if g.get("class") == "moves")
    found = [m.get("data-x") for m in moving.iter() if m.tag != f"{space}g"]
    assert len(found) > 40 and all(found)
    assert {int(step) for one in found for step in str(one).split()} <= {-1, *range(last + 1)}
    assert "<ring> & co" in [text.text for text in svg.iter(f"{space}text")]


def test_writes_thousands_of_marks_in_groups() -> None:
    rows = [[event(0, n, "send", n, n + 1, peer=1) for n in range(12_000)], []]
    whole = drawing(timeline(trace_of_rows(2, rows)))
    marks = tuple(replace(m, at=(n, n + 1)) for n in range(9_000) for m in whole.marks[2:3])
    svg = replace(whole, marks=marks).svg()
    assert svg.count("<path data-points") == -(-9_000 // 64) and svg.count("<rect") < 10
    assert re.search(r'data-points="4" data-x="0 [\d.]+ 1 [\d.]+ 1 [\d.]+ 0 [\d.]+ 1 ', svg)


@pytest.mark.parametrize("marks", [timeline(ping_pong()), timeline(ring(4, 3))])
def test_painted_picture_matches_svg(marks: Picture) -> None:
    """Each bar has its color, in the middle of its upper edge."""
    from io import BytesIO

    from PIL import Image

    image = Image.open(BytesIO(drawing(marks).png(2.0))).convert("RGB")
    for mark in drawing(marks).marks:
        if isinstance(mark, Box) and mark.look:
            (x, y), (right, _) = mark.points
            red, green, blue = image.getpixel((round(x + right), round(2 * y) + 1))  # type: ignore[misc]
            wanted = [int(mark.look.color[i : i + 2], 16) for i in (1, 3, 5)]
            ordered = sorted(range(3), key=lambda i: wanted[i])
            assert sorted(range(3), key=lambda i: (red, green, blue)[i]) == ordered, mark


def test_unwaited_call_is_not_shown_unfinished() -> None:
    unwaited = event(0, 0, "all_reduce", 0, None, world=1)
    picture = timeline(Trace(1, (replace(unwaited, asynchronous=True, wait_ns=None),)))
    assert "rank 0: all_reduce (never waited for)" in picture.text
    assert legend(picture)[0] == "never waited for"
