"""Connections that keep a board waiting are closed, and everybody else is served meanwhile."""

from __future__ import annotations

import secrets
import select
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from helpers.course.workspace import find_workspace
from helpers.room.board_messages import CheckEvent, EventBatch, JoinReply, JoinRequest
from helpers.room.connections import MAX_WAITING, network_key
from helpers.room.outbox import RoomError, post
from helpers.room.store import Store
from tests.room.conftest import DEADLINE_S, Served, serving

KINDS = {
    "nothing": b"",
    "half a header": b"POST /api/events HTTP/1.1\r\nHost: x\r\n",
    "half a body": b"POST /api/join HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\n\r\n"
    + b" " * 2000,
    "a request, and then nothing": b"GET /style.css HTTP/1.1\r\nHost: x\r\n\r\n",
}


@contextmanager
def waiting(room: Served, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Open connections from one address, and send the same bytes over each."""
    where = urlsplit(room.url)
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            connection = stack.enter_context(
                socket.create_connection((where.hostname, where.port), DEADLINE_S)
            )
            connection.sendall(sent)
            found.append(connection)
        yield found


def closed(connections: list[socket.socket]) -> int:
    """Count the connections closed by the board."""
    count = 0
    for each in select.select(connections, [], [], 0)[0]:
        try:
            while chunk := each.recv(1 << 16, socket.MSG_DONTWAIT):
                assert chunk
            count += 1
        except BlockingIOError:
            pass
        except ConnectionError:
            count += 1
    return count


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_closes_idle_connections_and_serves_others(served: Served, kind: str) -> None:
    ana = post(served.url, "api/join", JoinRequest("Ana", served.code), "", JoinReply)
    with waiting(served, 300, KINDS[kind]) as connections:
        deadline, gone = time.monotonic() + DEADLINE_S, 0
        left = list(connections)
        while gone < 300 - MAX_WAITING:
            assert time.monotonic() < deadline, f"{gone} closed"
            event = CheckEvent(secrets.token_hex(16), "swap", "wrong")
            post(served.url, "api/events", EventBatch([event]), ana.token)
            left = [each for each in left if not closed([each])]
            gone = 300 - len(left)
            time.sleep(0.2)
        # the other connections also reached their time limit
        while left:
            assert time.monotonic() < deadline, f"{len(left)} left"
            left = [each for each in left if not closed([each])]
            time.sleep(0.2)


@pytest.mark.extended
def test_second_board_rejects_same_file(tmp_path: Path, forking_python: str) -> None:
    with serving(tmp_path / "room.sqlite3", forking_python):
        second = course("serve", tmp_path / "room.sqlite3", "--port", "0")
    assert second.returncode == 1 and "Another board is serving" in second.stderr


@pytest.mark.parametrize("content", [None, b"not a database " * 100, b""])
def test_reports_invalid_room_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "file"
    if content is None:
        file.mkdir()
    elif content:
        file.write_bytes(content)
    else:
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("CREATE TABLE events (other TEXT)")
    found = course("serve", file, "--port", "0")
    assert found.returncode == 1 and str(file) in found.stderr and "Traceback" not in found.stderr


@pytest.mark.extended
def test_forgets_learner_on_open_board(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "room.sqlite3"
    ana = post(served.url, "api/join", JoinRequest("Ana", served.code), "", JoinReply)
    event = CheckEvent(secrets.token_hex(16), "swap", "wrong")
    post(served.url, "api/events", EventBatch([event]), ana.token)
    unknown = course("forget", file, "Ben")
    assert unknown.returncode == 1 and "Ana" in unknown.stderr
    assert course("forget", file, "Ana").returncode == 0
    code = course("new-code", file).stdout.split()[-1].rstrip(".")
    assert code != served.code
    deadline = time.monotonic() + DEADLINE_S
    for message, path, token in (
        (JoinRequest("Eve", served.code), "api/join", ""),
        (EventBatch([event]), "api/events", ana.token),
    ):
        with pytest.raises(RoomError, match="refused"):
            while True:
                post(served.url, path, message, token)
                assert time.monotonic() < deadline
                time.sleep(0.2)
    assert post(served.url, "api/join", JoinRequest("Ben", code), "", JoinReply).name == "Ben"
    cy = post(served.url, "api/join", JoinRequest("Cy", code), "", JoinReply)
    post(served.url, "api/events", EventBatch([event]), cy.token)
    removed = subprocess.run(
        [sys.executable, "-m", "helpers.course.cli", "room", "forget", "--silent", "--file", file],
        cwd=find_workspace().root,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert removed.returncode == 0, removed.stderr
    with closing(Store(file)) as store:
        assert [each.name for each in store.learners()] == ["Cy"]


def course(command: str, file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "helpers.course.cli", "room", command, "--file", str(file), *words],
        cwd=find_workspace().root,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


def test_groups_ipv6_addresses_by_network() -> None:
    assert (
        network_key("2001:db8::1%eth0")
        == network_key("2001:db8::ffff")
        != network_key("2001:db8:0:1::1")
    )
    assert network_key("::ffff:192.0.2.1") == network_key("192.0.2.1") == "192.0.2.1"
    assert network_key("") == ""
