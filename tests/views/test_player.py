"""Test the data of the page that plays a run. tests/browser tests how it plays."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from dataclasses import replace
from typing import Any

import pytest

from helpers.ranks.failures import Deadlock, RankError, RankFailed
from helpers.ranks.run import Run
from helpers.trace.events import CallWait, Diagnosis, OtherWait, Trace
from helpers.views.lanes import lanes_html
from helpers.views.picture import TraceSource
from helpers.views.player import MAX_PLAYED
from helpers.views.rank_endings import endings
from helpers.views.timeline import STILL_WORDS, player_html, timeline
from tests.views.builders import event, ping_pong, place, receive_first, run_of, trace_of_rows


@pytest.fixture(autouse=True)
def a_page_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("timeline", "picture"):
        monkeypatch.setattr(f"helpers.views.{module}.widgets_can_live", lambda: True)


def unpacked(html: str) -> list[str]:
    """Return the texts that a script has compressed: the module, and the data."""
    packed = re.findall(r'await text\("([^"]*)"\)', html)
    return [gzip.decompress(base64.b64decode(text)).decode() for text in packed]


def played(what: TraceSource) -> dict[str, Any]:
    live = timeline(what).live
    assert live is not None
    found: dict[str, Any] = json.loads(unpacked(live())[1])
    return found


def stuck() -> Run:
    failure = Deadlock(Diagnosis("cycle", "A cycle.", "Send first.", receive_first(), (0, 1)))
    trace = Trace(2, tuple(wait.event for wait in receive_first() if wait.event))
    return replace(run_of(["", ""], failure=failure), trace=trace)


def labels(data: dict[str, Any]) -> list[str]:
    return [data["texts"][number] for number in data["bars"]["label"]]


def test_bars_follow_start_order_with_labels() -> None:
    data = played(ping_pong())
    assert labels(data) == ["send→1", "recv←0", "recv←1", "send→0", "all_reduce", "all_reduce"]
    assert data["bars"]["rank"] == [0, 1, 0, 1, 0, 1]
    assert data["bars"]["begin"] == sorted(data["bars"]["begin"])
    times = [time for time, _, _ in data["steps"]]
    assert times == sorted(times) and times[0] == 0 and len(times) == 12
    assert data["ranks"] == 2 and data["ending"] is None


def test_messages_fly_from_send_to_receive() -> None:
    data = played(ping_pong())
    steps = [(what, labels(data)[bar]) for _, what, bar in data["steps"]]
    assert [(steps[a], steps[b]) for a, b, _, _ in data["flights"]] == [
        ((0, "send→1"), (2, "recv←0")),
        ((0, "send→0"), (2, "recv←1")),
    ]
    ((_, _, down_from, down_to), (_, _, up_from, up_to)) = data["flights"]
    assert down_from < down_to and up_from > up_to


def test_plays_unreceived_messages_and_unfinished_calls() -> None:
    data = played(trace_of_rows(2, [[event(0, 0, "send", 0, None, peer=1)]]))
    assert [flight[:2] for flight in data["flights"]] == [[0, -1]]
    assert data["bars"]["end"] == [1] and len(data["steps"]) == 1


def test_stores_each_code_line_once() -> None:
    where = place(3)
    row = [event(0, n, "send", n, n + 1, peer=1, where=where) for n in range(5)]
    data = played(trace_of_rows(2, [row, []]))
    assert data["places"] == [["cell 5", 3, ""]]
    assert data["bars"]["place"] == [0] * 5


def test_shows_tensor_contents_before_and_after() -> None:
    data = played(trace_of_rows(1, [[event(0, 0, "all_reduce", 0, 1, before="[1]", after="[3]")]]))
    assert data["texts"][data["bars"]["before"][0]] == "[1]"
    assert data["texts"][data["bars"]["after"][0]] == "[3]"


def test_deadlock_ends_with_wait_graph() -> None:
    data = played(stuck())
    assert data["failure"] == "Deadlock: A cycle."
    assert 'aria-label="wait graph of 2 ranks: cycle 0 → 1 → 0' in data["ending"]["graph"]


def test_ending_matches_text_of_rank_lanes() -> None:
    left = [
        CallWait(0, event(0, 0, "recv", 0, None, peer=1), (1,)),
        OtherWait(1, "has returned"),
    ]
    failure = Deadlock(Diagnosis("rank_left", "Rank 1 has returned.", "", tuple(left), (1,)))
    trace = trace_of_rows(2, [[event(0, 0, "recv", 0, None, peer=1)], []])
    ending = played(replace(run_of(["", ""], failure=failure), trace=trace))["ending"]
    assert ending["ranks"] == {
        "0": "recv from rank 1: waits for rank 1",
        "1": "has returned",
    }


def test_failure_ending_shows_waiting_ranks() -> None:
    failure = RankFailed(RankError(0, "KeyError", "missing"))
    pending = replace(event(2, 0, "isend", 0, None, peer=1), wait_ns=None)
    rows = [[], [event(1, 0, "all_reduce", 0, None)], [pending]]
    run = replace(run_of(["", "", ""], failure=failure), trace=trace_of_rows(3, rows))
    assert endings(run) == {0: "raised KeyError", 1: "was in all_reduce"}


def test_deadlock_lanes_show_message_once() -> None:
    html = lanes_html(stuck())
    told, page = html.split("<script", 1)
    data = json.loads(unpacked(page)[1])
    assert told.count("A cycle.") == 1 and data["failure"] == "" and data["ending"]["graph"]
    # once more in words below the image, which the player hides
    assert told.count("waits for rank 1") == 1 and "waits for rank 1" in told.partition("<img")[2]
    assert data["ending"]["ranks"]["0"].endswith("waits for rank 1")
    printed = lanes_html(replace(stuck(), output=["a line", ""]))
    below = printed.rpartition("</script>")[2]
    assert "a line" in below and "waits for" not in below
    assert "<script" not in lanes_html(replace(stuck(), failure=None))
    assert player_html(run_of([""])) == player_html(None) == "", "nothing to play"


def test_player_autostarts_only_on_request() -> None:
    run = replace(run_of(["", ""]), trace=ping_pong())
    still, moving = (json.loads(unpacked(player_html(run, at_once=x))[1]) for x in (False, True))
    assert still["made"] == played(run)["made"] == 0.0
    assert 0 <= time.time() - moving["made"] < 60


def test_has_no_player_outside_live_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helpers.views.timeline.widgets_can_live", lambda: False)
    assert "<script" not in lanes_html(stuck())


@pytest.mark.extended
def test_plays_earliest_calls_and_counts_rest() -> None:
    row = [event(0, n, "barrier", n, n + 1) for n in range(MAX_PLAYED + 7)]
    data = played(trace_of_rows(1, [row]))
    assert len(data["bars"]["rank"]) == MAX_PLAYED and data["left_out"] == 7
    assert data["drawing"].startswith("<svg") and not played(ping_pong())["drawing"]


def test_rank_text_cannot_end_script() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    failing = event(0, 0, "send", 0, 1, peer=1, error=evil, call=evil[:20], before=evil)
    trace = trace_of_rows(2, [[failing]])
    assert evil in " ".join(played(trace)["texts"])
    html = timeline(trace, title=evil).html()
    (script,) = re.findall(r"<script.*?</script>", html, re.DOTALL)
    assert html.endswith(script) and html.count("<img") == 1 and "onerror" not in html
    (source,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    svg = base64.b64decode(source).decode()
    assert "<img" not in svg and "&lt;img" in svg


def test_picture_plays_only_on_live_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = timeline(ping_pong())
    bundle = picture._repr_mimebundle_()
    assert isinstance(bundle, dict) and bundle["text/html"].count("<img ") == 1
    assert f'alt="{picture.text}"' in bundle["text/html"]
    monkeypatch.setattr("helpers.views.picture.widgets_can_live", lambda: False)
    assert set(picture._repr_mimebundle_()[0]) == {"image/png"}
    assert picture.html().startswith('<img src="data:image/png;base64,')


def test_static_picture_explains_how_to_play() -> None:
    assert STILL_WORDS in player_html(stuck()).partition("<script")[0]
