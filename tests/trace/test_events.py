"""Pairing of the ranks' calls, on hand-made traces."""

from __future__ import annotations

from helpers.trace.events import Event, Trace

SUBGROUP = ("1", (0, 1))
EVERYONE = ("0", (0, 1, 2, 3))


def calls(rank: int, *groups: tuple[str, tuple[int, ...]]) -> list[Event]:
    """Return the calls of a rank that runs an all_reduce on one group after another."""
    return [
        Event(rank, seq, "all_reduce", "all_reduce", *group, start_ns=10 * seq + rank)
        for seq, group in enumerate(groups)
    ]


def test_counts_collectives_separately_for_each_group() -> None:
    of_ranks = [
        calls(0, SUBGROUP, EVERYONE, SUBGROUP),
        calls(1, SUBGROUP, EVERYONE, SUBGROUP),
        calls(2, EVERYONE),
        calls(3, EVERYONE),
    ]
    found = Trace(4, tuple(sum(of_ranks, []))).collectives()
    assert {(c.group_ranks, c.index, tuple((e.rank, e.seq) for e in c.calls)) for c in found} == {
        ((0, 1), 0, ((0, 0), (1, 0))),
        ((0, 1, 2, 3), 0, ((0, 1), (1, 1), (2, 0), (3, 0))),
        ((0, 1), 1, ((0, 2), (1, 2))),
    }
    assert all(collective.complete for collective in found)
