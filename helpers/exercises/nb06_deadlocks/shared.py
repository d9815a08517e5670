"""Draw flight-recorder dumps of a job with a fault, and read them, for exercises of notebook 06."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helpers.checks.author import *

OPS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter")
Table = dict[int, tuple[str, list[int]]]
"""{collective_seq_id: (function called by a rank, size of its tensor)}"""


def draw_tables(draw: Draw, kind: str, fault: int, culprits: Sequence[int]) -> list[Table]:
    """Draw each rank's calls: the same on all ranks, except at the fault and perhaps after it."""
    calls: list[tuple[str, list[int]]] = [
        (draw.rng.choice(OPS), [draw.whole(2, 9) for _ in range(draw.of(0, 1, 1, 2, 3))])
        for _ in range(fault + 4)
    ]
    ahead, alone = draw.of(0, 0, 1, 3), draw.of(0, 0, 1, 2)
    tables = []
    for rank in range(draw.ranks):
        last = fault + (alone if rank in culprits else ahead)
        if rank in culprits and kind == "missing":
            last = fault - 1
        table: Table = {seq: calls[seq - 1] for seq in range(1, last + 1)}
        # calls after a fault prove nothing, so they may differ
        for seq in range(fault + 1, last + 1):
            if kind != "none" and draw.rng.random() < 0.3:
                table[seq] = (draw.rng.choice(OPS), [draw.whole(2, 9)])
        tables.append(table)
    others = [rank for rank in range(draw.ranks) if rank not in culprits]
    op, size = calls[fault - 1]
    if kind == "size":
        for rank in culprits:
            wrong = [[*size[:-1], size[-1] + 1] if size else [2], [1, *size], [*size, 1]]
            tables[rank][fault] = op, draw.rng.choice(wrong)
    if kind == "op":
        for rank in culprits:
            tables[rank][fault] = OPS[(OPS.index(op) + 1) % len(OPS)], size
    if kind in {"op", "missing"} and len(others) > 2 and draw.rng.random() < 0.6:
        tables[others[0]][fault] = op, [*size, 5]  # readers check for a different size last
    if kind == "missing" and len(others) > 2 and draw.rng.random() < 0.6:
        tables[others[1]][fault] = OPS[(OPS.index(op) + 2) % len(OPS)], size
    return tables


def delete_oldest(draw: Draw, table: Table, limit: int) -> None:
    """Delete some of the oldest entries, but no entries from number `limit` on."""
    for seq in range(1, draw.whole(1, limit)):
        del table[seq]


def make_dump(table: Table, ranks: int, fault: int) -> dict[str, Any]:
    """Return a rank's dump with the fields of torch's dumps that a reader needs."""
    entries = [
        {
            "process_group": ["0", "default_pg"],
            "collective_seq_id": seq,
            "profiling_name": f"gloo:{op}",
            "input_sizes": [size],
            "input_dtypes": ["Float"],
            "state": "completed" if seq < fault else "scheduled",
            "is_p2p": False,
        }
        for seq, (op, size) in table.items()
    ]
    groups = {"0": {"ranks": str(list(range(ranks)))}}
    return {"version": "2.10", "pg_config": groups, "entries": entries}


Answer = tuple[str, int, list[int]]


def minority_ranks(values: list[Any]) -> list[int]:
    usual = max(values, key=values.count)
    return [rank for rank, what in enumerate(values) if what != usual]


def read_dumps(tables: Sequence[Table]) -> Answer:
    """Return the first fault. At each number, a missing call is reported before a wrong call or size."""
    for seq in range(max(map(min, tables)), max(map(max, tables)) + 1):
        if gone := [rank for rank, table in enumerate(tables) if seq not in table]:
            return "missing", seq, gone
        for part, kind in enumerate(("op", "size")):
            if culprits := minority_ranks([table[seq][part] for table in tables]):
                return kind, seq, culprits
    return "none", 0, []
