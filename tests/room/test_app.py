"""Requests to the board that are refused or harmless."""

from __future__ import annotations

import secrets
import sqlite3
import time
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from helpers.checks.headings import headings
from helpers.checks.mistakes import known_mistakes
from helpers.room import app as app_module
from helpers.room.app import Room, application
from helpers.room.board import Board
from helpers.room.board_messages import (
    MAX_BYTES,
    MAX_EVENTS_PER_POST,
    MAX_JOIN_BYTES,
    CheckEvent,
    EventBatch,
    HandEvent,
    JoinRequest,
)
from helpers.room.connections import Connections
from helpers.room.store import Store

CODE, KEY = "abcd2345", "k" * 32
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=12,
)
# Nearly right posts, with any value in each field.
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["checked", "hand", "other"]) | JSON, "id": st.just("0" * 32) | JSON},
    optional={
        "exercise": st.just("swap") | JSON,
        "outcome": st.just("wrong") | JSON,
        "mistake": JSON,
        "minutes": JSON,
        "up": JSON,
        "code": JSON,
        "more": JSON,
    },
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("room") / "room.sqlite3"


@pytest.fixture(scope="module")
def store(file: Path) -> Iterator[Store]:
    with closing(Store(file)) as store:
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("INSERT INTO settings VALUES ('code', ?)", (CODE,))
        yield store


@pytest.fixture(scope="module")
def client(store: Store) -> Iterator[TestClient]:
    """A board in this process, and a client that follows no redirects."""
    room = Room(store, Board(headings(), known_mistakes), KEY, "http://board")
    with TestClient(application(room), follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="module")
def eve(client: TestClient) -> dict[str, str]:
    """The headers of a joined learner who may post anything."""
    return {"Authorization": join(client, "Eve")["Authorization"]}


def join(client: TestClient, name: str = "Ana", code: str = CODE) -> dict[str, str]:
    reply = client.post("/api/join", content=msgspec.json.encode(JoinRequest(name, code)))
    assert reply.status_code == 200, reply.text
    return {"Authorization": f"Bearer {reply.json()['token']}", "name": reply.json()["name"]}


def post(client: TestClient, headers: dict[str, str], *events: Any) -> int:
    token = {"Authorization": headers["Authorization"]}
    reply = client.post(
        "/api/events", content=msgspec.json.encode(EventBatch([*events])), headers=token
    )
    return reply.status_code


def ids(store: Store) -> list[str]:
    return [each.event.id for each in store.stored_events()]


def new_id() -> str:
    return secrets.token_hex(16)


def test_stores_repeated_post_once(client: TestClient, store: Store) -> None:
    ana, event = join(client), CheckEvent(new_id(), "swap", "wrong")
    assert [post(client, ana, event, event), post(client, ana, event)] == [200, 200]
    # an event of another learner with the same id is a different event
    assert post(client, join(client), event) == 200
    assert ids(store).count(event.id) == 2


@pytest.mark.parametrize("code", ["", "abcd2346", "ABCD", "é" * 8, "x" * 100])
def test_rejects_wrong_code(client: TestClient, code: str) -> None:
    reply = client.post("/api/join", content=msgspec.json.encode(JoinRequest("Eve", code)))
    assert reply.status_code == 403 and reply.text == "This is not the room's code."


def test_accepts_code_in_capitals(client: TestClient) -> None:
    assert join(client, code=f" {CODE.upper()} ")["name"]


@pytest.mark.parametrize("token", ["", "0" * 64, "é", KEY, CODE, "Bearer"])
def test_rejects_forged_learner(client: TestClient, store: Store, token: str) -> None:
    event = CheckEvent(new_id(), "swap", "passed")
    reply = client.post(
        "/api/events",
        content=msgspec.json.encode(EventBatch([event])),
        headers={"Authorization": f"Bearer {token}".encode()},
    )
    assert reply.status_code == 401
    assert event.id not in ids(store)


def test_stores_no_token_on_disk(client: TestClient, file: Path) -> None:
    token = join(client)["Authorization"].split()[1]
    assert not any(token.encode() in each.read_bytes() for each in file.parent.iterdir())
    assert file.stat().st_mode & 0o077 == 0


def test_rejoining_learner_keeps_identity(client: TestClient) -> None:
    ana = join(client, "Ana again")
    reply = client.post(
        "/api/join",
        content=msgspec.json.encode(JoinRequest("Anna", "")),
        headers={"Authorization": ana["Authorization"]},
    )
    assert f"Bearer {reply.json()['token']}" == ana["Authorization"]
    assert reply.json()["name"] == "Anna"


@pytest.mark.parametrize("declared", [True, False])
def test_rejects_oversized_posts(client: TestClient, declared: bool) -> None:
    ana, body = join(client), b"[" * (MAX_BYTES + 1)
    content = body if declared else iter([body[: MAX_BYTES // 2]] * 3)
    reply = client.post(
        "/api/events", content=content, headers={"Authorization": ana["Authorization"]}
    )
    assert reply.status_code == 413


def test_rejects_excessive_events_code_and_nesting(client: TestClient) -> None:
    ana = join(client)
    many = [CheckEvent(new_id(), "swap", "wrong") for _ in range(MAX_EVENTS_PER_POST + 1)]
    assert post(client, ana, *many) == 400
    assert post(client, ana, HandEvent(new_id(), True, "swap", "x" * 20_001)) == 400
    token = {"Authorization": ana["Authorization"]}
    assert client.post("/api/events", content=b"[" * 100_000, headers=token).status_code == 400


def test_rejects_flood_of_events(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helpers.room.store.MAX_EVENTS", 2)
    ana = join(client)
    assert post(client, ana, *(CheckEvent(new_id(), "swap", "wrong") for _ in range(2))) == 200
    assert post(client, ana, CheckEvent(new_id(), "swap", "wrong")) == 429


def test_limits_joins_from_single_address(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "MAX_JOINS_PER_MINUTE", 0)
    reply = client.post("/api/join", content=msgspec.json.encode(JoinRequest("Ana", CODE)))
    assert reply.status_code == 429 and "Wait a minute" in reply.text


def test_rejects_oversized_join_request(client: TestClient) -> None:
    assert client.post("/api/join", content=b" " * (MAX_JOIN_BYTES + 1)).status_code == 413


def test_keeps_code_of_latest_hand(client: TestClient, store: Store) -> None:
    ana = join(client)
    hands = [HandEvent(new_id(), True, "swap", f"code {number}") for number in range(3)]
    for each in (*hands, hands[2]):  # the last hand is sent twice
        assert post(client, ana, each) == 200
    kept = {each.event.id: each.event for each in store.stored_events()}
    assert [getattr(kept[each.id], "code", None) for each in hands] == ["", "", "code 2"]


def test_teacher_removes_learner_and_replaces_code(client: TestClient, store: Store) -> None:
    eve = join(client, "Eve to be removed")
    assert post(client, eve, CheckEvent(new_id(), "swap", "wrong")) == 200
    (learner,) = [each for each in store.learners() if each.name == "Eve to be removed"]
    board = {"Cookie": f"real-ranks-room={KEY}", "X-Room": "board"}
    assert client.post(f"/forget/{learner.id}").status_code == 403
    assert client.post(f"/forget/{learner.id}", headers=board).status_code == 204
    assert post(client, eve, CheckEvent(new_id(), "swap", "wrong")) == 401
    assert learner.id not in {each.learner for each in store.stored_events()}
    assert client.post("/new-code", headers=board).status_code == 204
    assert client.post("/api/join", json={"name": "Eve", "code": CODE}).status_code == 403
    with closing(sqlite3.connect(store._path)) as db, db:
        db.execute("UPDATE settings SET value = ? WHERE name = 'code'", (CODE,))
    # the board notices changes of its file, as after `course room new-code` in another terminal
    deadline = time.monotonic() + 30
    while (
        status := client.post("/api/join", json={"name": "Ana", "code": CODE}).status_code
    ) != 200:
        assert status == 403 and time.monotonic() < deadline
        time.sleep(0.1)


def test_reports_full_disk(client: TestClient, store: Store) -> None:
    ana = join(client)
    assert post(client, ana, HandEvent(new_id(), True)) == 200
    learner = store.learners()[-1].id
    store._db.execute("PRAGMA query_only = ON")  # writing then also raises a sqlite3.Error
    board = {"Cookie": f"real-ranks-room={KEY}", "X-Room": "board"}
    try:
        replies = [
            client.post(f"/lower/{learner}", headers=board),
            client.post(f"/forget/{learner}", headers=board),
            client.post("/new-code", headers=board),
            client.post("/api/join", json={"name": "Ana", "code": CODE}),
        ]
    finally:
        store._db.execute("PRAGMA query_only = OFF")
    assert [(each.status_code, "disk" in each.text) for each in replies] == [(503, True)] * 4


def test_full_board_serves_known_users(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = join(client)
    monkeypatch.setattr(Connections, "is_full", True)
    assert client.get("/").status_code == 503
    assert client.post("/api/join", json={"name": "Eve", "code": CODE}).status_code == 503
    assert post(client, ana, CheckEvent(new_id(), "swap", "wrong")) == 200
    assert client.get("/board", headers={"Cookie": f"real-ranks-room={KEY}"}).status_code == 200


def test_rejects_learners_beyond_room_limit(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "MAX_LEARNERS", 0)
    reply = client.post("/api/join", content=msgspec.json.encode(JoinRequest("Ana", CODE)))
    assert reply.status_code == 429


@pytest.mark.parametrize("name", [rb"\ud800", rb"\u0000", rb"\u202e", b"\xff", b"<b>"])
def test_stores_printable_names_or_rejects_them(client: TestClient, name: bytes) -> None:
    body = b'{"name": "' + name + b'", "code": "' + CODE.encode() + b'"}'
    reply = client.post("/api/join", content=body)
    assert reply.status_code == 400 or reply.json()["name"].isprintable()


@pytest.mark.extended
@given(body=st.binary(max_size=300) | JSON.map(lambda data: msgspec.json.encode(data)))
@settings(max_examples=60)
def test_tolerates_arbitrary_bytes(client: TestClient, eve: dict[str, str], body: bytes) -> None:
    for path in ("/api/events", "/api/join"):
        assert client.post(path, content=body, headers=eve).status_code in {200, 400}


@pytest.mark.extended
@given(events=st.lists(EVENTS, max_size=3))
@settings(max_examples=80)
def test_stores_or_rejects_malformed_events(
    client: TestClient, eve: dict[str, str], events: list[dict[str, Any]]
) -> None:
    body = msgspec.json.encode({"events": events})
    assert client.post("/api/events", content=body, headers=eve).status_code in {200, 400}


@given(
    name=st.text(max_size=200) | st.sampled_from(["<script>alert(1)</script>", "\u202eanA", "\0\n"])
)
@settings(max_examples=60)
def test_displayable_name_is_one_printable_line(name: str) -> None:
    shown = app_module._displayable_name(name)
    assert 0 < len(shown) <= 60 and shown.isprintable()
    assert shown == app_module._displayable_name(shown)


@pytest.mark.parametrize("name", ["\u3164", "\u2800\ufe0f", "\u200b\u115f"])
def test_replaces_invisible_name(name: str) -> None:
    assert app_module._displayable_name(name) == "someone"


def test_limits_combining_accents_in_name() -> None:
    shown = app_module._displayable_name("e" + "\u0301" * 60)
    assert sum(unicodedata.category(c) == "Mn" for c in shown) <= 2


# --- the teacher's part ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/board", "/projected", "/news", "/play/0"])
@pytest.mark.parametrize("cookie", ["", "x", CODE])
def test_learners_cannot_open_board(client: TestClient, path: str, cookie: str) -> None:
    reply = client.get(path, headers={"Cookie": f"real-ranks-room={cookie}"})
    assert reply.status_code == 403 and "teacher" in reply.text


def test_teacher_key_opens_board(client: TestClient) -> None:
    assert client.get("/enter?key=wrong").status_code == 403
    reply = client.get(f"/enter?key={KEY}")
    assert reply.status_code == 303 and "HttpOnly" in reply.headers["set-cookie"]
    cookie = {"Cookie": f"real-ranks-room={KEY}"}
    page = client.get("/board", headers=cookie)
    assert (
        page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    )
    assert client.get("/play/0", headers=cookie).status_code == 404
    client.cookies.clear()


def test_rejects_lowering_hands_from_other_sites(client: TestClient) -> None:
    ana = join(client)
    assert post(client, ana, HandEvent(new_id(), True)) == 200
    cookie = {"Cookie": f"real-ranks-room={KEY}"}
    assert client.post("/lower/1", headers=cookie).status_code == 403
    assert client.post("/lower/1", headers={**cookie, "X-Room": "board"}).status_code == 204


def test_front_page_and_assets_are_public(client: TestClient) -> None:
    assert "Your code stays here" in client.get("/").text
    for path in ("/style.css", "/board.css", "/board.js"):
        assert client.get(path).headers["x-content-type-options"] == "nosniff"
    assert client.get("/board.html").status_code == 404
