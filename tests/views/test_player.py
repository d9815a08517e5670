"""What the page that plays a run is given. How it plays is tried in tests/browser."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from helpers.ranks.failures import Deadlock
from helpers.trace.events import Diagnosis
from helpers.views import live
from helpers.views.player import MOST_PLAYED, PAGE, played
from helpers.views.timeline import timeline
from tests.views.builders import event, ping_pong, place, receive_first, run_of, trace_of_rows


def labels(data: dict[str, Any]) -> list[str]:
    return [data["texts"][number] for number in data["bars"]["label"]]


def test_bars_come_in_the_order_of_their_starts_with_what_each_call_was() -> None:
    data = played(ping_pong())
    assert labels(data) == ["send→1", "recv←0", "recv←1", "send→0", "all_reduce", "all_reduce"]
    assert data["bars"]["rank"] == [0, 1, 0, 1, 0, 1]
    assert data["bars"]["start"] == sorted(data["bars"]["start"])
    assert data["bars"]["start"][0] == 0
    assert data["ranks"] == 2 and data["ending"] is None


def test_messages_and_meetings_name_their_bars() -> None:
    data = played(ping_pong())
    names = labels(data)
    assert [(names[send], names[recv]) for send, recv in data["messages"]] == [
        ("send→1", "recv←0"),
        ("send→0", "recv←1"),
    ]
    assert data["collectives"] == [[4, 5]]


def test_a_message_that_nobody_receives_and_a_call_without_end_are_told() -> None:
    data = played(trace_of_rows(2, [[event(0, 0, "send", 0, None, peer=1)]]))
    assert data["messages"] == [(0, -1)]
    assert data["bars"]["end"] == [None]


def test_each_line_of_code_is_sent_once() -> None:
    where = place(3)
    row = [event(0, n, "send", n, n + 1, peer=1, where=where) for n in range(5)]
    data = played(trace_of_rows(2, [row, []]))
    assert data["places"] == [("cell 5", 3, "")]
    assert data["bars"]["place"] == [0] * 5


def test_what_tensors_held_is_told_before_and_after() -> None:
    data = played(trace_of_rows(1, [[event(0, 0, "all_reduce", 0, 1, before="[1]", after="[3]")]]))
    assert data["texts"][data["bars"]["before"][0]] == "[1]"
    assert data["texts"][data["bars"]["after"][0]] == "[3]"


def test_a_deadlock_stands_still_with_who_waits_for_whom() -> None:
    waits = receive_first()
    failure = Deadlock(Diagnosis("cycle", "A cycle.", "Send first.", waits, (0, 1)))
    ending = played(run_of(["", ""], failure=failure))["ending"]
    assert ending["kind"] == "Deadlock" and ending["title"] == "A cycle."
    assert [wait["for"] for wait in ending["waits"]] == [[1], [0]]
    assert "recv from rank 1" in ending["waits"][0]["says"]


def test_the_earliest_calls_are_played_and_the_others_counted() -> None:
    row = [event(0, n, "barrier", n, n + 1) for n in range(MOST_PLAYED + 7)]
    data = played(trace_of_rows(1, [row]))
    assert len(data["bars"]["rank"]) == MOST_PLAYED and data["left_out"] == 7


def test_it_is_plain_json() -> None:
    data = played(ping_pong())
    assert json.loads(json.dumps(data, allow_nan=False))["headline"] == data["headline"]


def test_words_of_a_rank_cannot_end_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "widgets_can_live", lambda: True)
    evil = "</script><img src=x onerror=alert(1)>"
    failing = event(0, 0, "send", 0, 1, peer=1, error=evil, call=evil[:20], before=evil)
    data = played(trace_of_rows(2, [[failing]]))
    assert evil in " ".join(data["texts"])
    html = live.live_page(PAGE, data, "still")["text/html"]
    (script,) = re.findall(r"<script.*?</script>", html, re.DOTALL)
    assert html.endswith(script) and "<img" not in html
    assert evil in script.replace("\\u003c", "<")


def test_a_picture_plays_only_where_a_page_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = timeline(ping_pong())
    assert picture._repr_mimebundle_() == {}
    monkeypatch.setattr("helpers.views.picture.widgets_can_live", lambda: True)
    monkeypatch.setattr(live, "widgets_can_live", lambda: True)
    html = picture._repr_mimebundle_()["text/html"]
    assert html.count("<img ") == 1 and picture.text.split("\n")[0] in html
    assert "recv←0" in html or "recv\\u21900" in html
