"""500 learners with one check per second each lose no event. The test prints their waiting times."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from contextlib import closing
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

import msgspec
import pytest

from helpers.checks.headings import headings
from helpers.room.board_messages import CheckEvent, EventBatch
from helpers.room.store import Store
from tests.room.conftest import Served, serving

LEARNERS, SECONDS = 500, 20


async def posted(host: str, port: int, token: str, event: CheckEvent) -> float:
    """Post an event over a separate connection, like a kernel; return the seconds until "stored"."""
    body = msgspec.json.encode(EventBatch([event]))
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(
        f"POST /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    reply = await reader.read()
    took = time.perf_counter() - began
    writer.close()
    assert reply.startswith(b"HTTP/1.1 200"), reply
    return took


async def learner(host: str, port: int, token: str, phase: float, names: list[str]) -> list[float]:
    took = []
    due = time.monotonic() + phase
    for second in range(SECONDS):
        await asyncio.sleep(max(0.0, due + second - time.monotonic()))
        event = CheckEvent(secrets.token_hex(16), names[second % len(names)], "wrong")
        took.append(await posted(host, port, token, event))
    return took


async def teacher(room: Served) -> int:
    """Read the stream of the teacher's page; return the number of received bytes."""
    where = urlsplit(room.url)
    assert where.hostname and where.port
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    cookie = f"real-ranks-room={room.key}"
    writer.write(f"GET /news HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n".encode())
    count = 0
    try:
        while chunk := await reader.read(1 << 16):
            count += len(chunk)
    except asyncio.CancelledError:
        writer.close()
    return count


async def load(room: Served, tokens: list[str]) -> tuple[list[float], int]:
    where = urlsplit(room.url)
    assert where.hostname and where.port
    names = [each.name for each in headings().values() if each.notebook == "04_collectives"]
    seen = asyncio.create_task(teacher(room))
    all_took = await asyncio.gather(
        *(
            learner(where.hostname, where.port, token, number / len(tokens), names)
            for number, token in enumerate(tokens)
        )
    )
    seen.cancel()
    return [took for each in all_took for took in each], await seen


async def join(store: Store, tokens: list[str]) -> None:
    for number, token in enumerate(tokens):
        await store.join(f"Learner {number}", token)


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_large_class_loses_no_events(tmp_path: Path) -> None:
    file = tmp_path / "room.sqlite3"
    tokens = [secrets.token_hex(32) for _ in range(LEARNERS)]
    with closing(Store(file)) as store:  # a board accepts fewer joins from one address at once
        asyncio.run(join(store, tokens))
    with serving(file) as room:
        took, seen = asyncio.run(load(room, tokens))
    cuts = [1000 * cut for cut in quantiles(took, n=100)]
    print(
        f"\n{len(took)} posts of {LEARNERS} learners in {SECONDS} s, load {os.getloadavg()[0]:.1f}: "
        f"median {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, worst {1000 * max(took):.1f} ms; "
        f"the teacher's page was sent {seen / 1024 / SECONDS:.1f} KiB/s"
    )
    with closing(Store(file)) as store:
        assert len(store.stored_events()) == len(took) == LEARNERS * SECONDS
