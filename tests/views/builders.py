"""Traces built by hand, for the tests of the views."""

from __future__ import annotations

import random
from collections.abc import Sequence

from helpers.ranks.run import Run
from helpers.trace.events import CallWait, Event, Place, Trace

MS = 1_000_000


def place(line: int, cell: str = "cell 5") -> Place:
    return Place("<ipython-input>", line, "f", cell)


def trace_of_rows(world_size: int, rows: Sequence[Sequence[Event]], dropped: int = 0) -> Trace:
    return Trace(world_size, tuple(event for row in rows for event in row), dropped)


def event(rank: int, seq: int, op: str, start: int, end: int | None, **more: object) -> Event:
    """Make a blocking call that lasted from `start` to `end` ms."""
    world = tuple(range(int(more.pop("world", 2))))  # type: ignore[call-overload]
    fields = {"call": op, "nbytes": 400, "group": "world", "group_ranks": world} | more
    return Event(
        rank,
        seq,
        op,
        start_ns=start * MS,
        wait_ns=start * MS,
        end_ns=None if end is None else end * MS,
        **fields,  # type: ignore[arg-type]
    )


def ping_pong(rounds: int = 1) -> Trace:
    rows: list[list[Event]] = [[], []]
    for n in range(rounds):
        t = 10 * n
        rows[0].append(event(0, 2 * n, "send", t, t + 3, peer=1))
        rows[0].append(event(0, 2 * n + 1, "recv", t + 4, t + 8, peer=1))
        rows[1].append(event(1, 2 * n, "recv", t + 1, t + 4, peer=0))
        rows[1].append(event(1, 2 * n + 1, "send", t + 5, t + 8, peer=0))
    t = 10 * rounds
    for rank in (0, 1):
        rows[rank].append(event(rank, 2 * rounds, "all_reduce", t + rank, t + 5, reduce_op="SUM"))
    return trace_of_rows(2, rows)


def ring(world_size: int = 16, rounds: int = 15) -> Trace:
    rng = random.Random(7)
    rows: list[list[Event]] = []
    for rank in range(world_size):
        row: list[Event] = []
        for n in range(rounds):
            t = 10 * n + rng.randrange(3)
            peers = {"send": (rank + 1) % world_size, "recv": (rank - 1) % world_size}
            for op, peer in peers.items():
                seq = len(row)
                row.append(event(rank, seq, op, t, t + 4, peer=peer, world=world_size))
        t = 10 * rounds
        row.append(event(rank, len(row), "all_reduce", t, t + 9, world=world_size))
        rows.append(row)
    return trace_of_rows(world_size, rows)


def receive_first() -> tuple[CallWait, ...]:
    """Both ranks receive before they send: the classic cycle."""
    calls = [
        event(rank, 0, "recv", 0, None, peer=1 - rank, where=place(3 + 4 * rank)) for rank in (0, 1)
    ]
    return tuple(CallWait(rank, calls[rank], (1 - rank,)) for rank in (0, 1))


def run_of(output: Sequence[str], values: Sequence[object] | None = None, **more: object) -> Run:
    size = len(output)
    filled = list(values) if values is not None else [None] * size
    return Run(size, filled, list(output), Trace(size), **more)  # type: ignore[arg-type]
