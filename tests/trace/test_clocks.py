"""Times of hosts whose clocks differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.trace.clocks import align_hosts
from helpers.trace.events import Event, Trace

HOSTS = ("a", "a", "b", "c")
EVERYONE = tuple(range(len(HOSTS)))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Trace, Trace]:
    """Draw a trace with correct clocks, and the same trace as recorded on hosts with wrong clocks."""
    now = [0] * len(HOSTS)
    rows: list[list[Event]] = [[] for _ in HOSTS]
    short = st.integers(1, 1000)

    def call(rank: int, op: str, end: int, **more: int) -> None:
        rows[rank].append(
            Event(
                *(rank, len(rows[rank]), op, op, "world", EVERYONE),
                nbytes=4,
                start_ns=now[rank],
                wait_ns=now[rank],
                end_ns=end,
                **more,  # type: ignore[arg-type]
            )
        )

    for _ in range(draw(st.integers(0, 12))):
        for rank in EVERYONE:
            now[rank] += draw(short)
        if draw(st.booleans()):
            begun = max(now)
            for rank in EVERYONE:
                end = begun + draw(short)
                call(rank, "all_reduce", end)
                now[rank] = end
        else:
            src, dst = draw(st.permutations(EVERYONE))[:2]
            end = max(now[src], now[dst]) + draw(short)
            call(src, "send", end, peer=dst)
            call(dst, "recv", end, peer=src)
            now[src] = now[dst] = end
    wrong = {host: draw(st.integers(-(10**10), 10**10)) for host in "abc"}
    true = Trace(len(HOSTS), tuple(e for row in rows for e in row), hosts=HOSTS)
    return true, replace(true, events=tuple(_late(e, wrong[HOSTS[e.rank]]) for e in true))


def _late(event: Event, by: int) -> Event:
    assert event.wait_ns is not None and event.end_ns is not None
    return replace(
        event, start_ns=event.start_ns + by, wait_ns=event.wait_ns + by, end_ns=event.end_ns + by
    )


def too_early(trace: Trace) -> Iterator[tuple[Event, Event]]:
    for message in trace.messages():
        recv = message.recv
        if recv is not None and recv.end_ns is not None and recv.end_ns < message.send.start_ns:
            yield message.send, recv
    for collective in trace.collectives():
        begun = max(collective.calls, key=lambda e: e.start_ns)
        yield from ((begun, e) for e in collective.calls if (e.end_ns or 0) < begun.start_ns)


@pytest.mark.extended
@given(worlds())
def test_messages_arrive_after_being_sent(made: tuple[Trace, Trace]) -> None:
    true, written = made
    found = align_hosts(written)
    assert not list(too_early(found))
    assert align_hosts(true) == true, "right clocks are left alone"
    assert align_hosts(found) == found
    for old, new in zip(written, found, strict=True):
        # shifting a host's whole clock is enough: no call becomes longer or shorter
        assert new == _late(old, new.start_ns - old.start_ns)


@pytest.mark.extended
@given(worlds())
def test_keeps_single_host_trace_unchanged(made: tuple[Trace, Trace]) -> None:
    alone = replace(made[1], hosts=())
    assert align_hosts(alone) is alone


def test_moves_receive_ends_for_drifting_clocks() -> None:
    """No shift suits both messages, so the one arriving too early gets the time when it was sent."""
    row = [
        Event(0, 0, "send", "send", "world", (0, 1), peer=1, start_ns=100, end_ns=110),
        Event(0, 1, "recv", "recv", "world", (0, 1), peer=1, start_ns=120, end_ns=130),
    ]
    other = [
        Event(1, 0, "recv", "recv", "world", (0, 1), peer=0, start_ns=0, end_ns=60),
        Event(1, 1, "send", "send", "world", (0, 1), peer=0, start_ns=200, end_ns=210),
    ]
    found = align_hosts(Trace(2, (*row, *other), hosts=("a", "b")))
    assert not list(too_early(found))
