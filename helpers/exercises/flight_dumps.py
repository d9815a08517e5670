"""Makes flight-recorder dumps of a job that hangs, with a culprit that is known.

Called by notebook 06's `who_hangs`. The fields are those of torch's own dumps
(`torch._C._distributed_c10d._dump_fr_trace_json`), as far as a reader needs them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

OPS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter")

Entry = dict[str, Any]
Dump = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A hang: from collective `seq` on, `ranks` do not do what the others do.

    kind: "missing" (they never called it), "op" (they called another one), "size" (they handed in
    another size) or "none" (nothing is wrong). forgotten: how many of its oldest entries a rank's
    ring buffer has lost. ahead: collectives that the others issued after `seq` without waiting;
    alone: those that the culprits issued after it. larger: (rank, seq) of entries that have another
    size as well, which is not what went wrong first.
    """

    world_size: int
    kind: str
    seq: int = 0
    ranks: tuple[int, ...] = ()
    forgotten: Sequence[int] = ()
    ahead: int = 0
    alone: int = 0
    larger: Sequence[tuple[int, int]] = ()

    @property
    def answer(self) -> tuple[str, int, list[int]]:
        return self.kind, self.seq, list(self.ranks)


def dumps_of(scenario: Scenario, rng: random.Random, length: int = 8) -> list[Dump]:
    """Write what each rank's flight recorder would hold; a job without a fault has `length` entries."""
    last = scenario.seq + max(scenario.ahead, scenario.alone) if scenario.seq else length
    calls = {seq: (rng.choice(OPS), rng.randrange(2, 9) * 4) for seq in range(1, last + 1)}
    dumps = []
    for rank in range(scenario.world_size):
        entries = [
            _entry(seq, *_made(scenario, rank, seq, calls[seq]), done=seq < (scenario.seq or 99))
            for seq in calls
            if not _absent(scenario, rank, seq)
        ]
        lost = scenario.forgotten[rank] if scenario.forgotten else 0
        dumps.append(
            {
                "version": "2.10",
                "pg_config": {"0": {"ranks": str(list(range(scenario.world_size)))}},
                "entries": entries[lost:],
            }
        )
    return dumps


def _absent(scenario: Scenario, rank: int, seq: int) -> bool:
    """A rank that is missing issued nothing more; the others wait at `seq`, or went on from it."""
    if not scenario.seq:
        return False
    if rank not in scenario.ranks:
        return seq > scenario.seq + scenario.ahead
    return (
        seq >= scenario.seq if scenario.kind == "missing" else seq > scenario.seq + scenario.alone
    )


def _made(scenario: Scenario, rank: int, seq: int, call: tuple[str, int]) -> tuple[str, int]:
    op, size = call
    size += (rank, seq) in scenario.larger
    if rank in scenario.ranks and seq == scenario.seq:
        if scenario.kind == "op":
            return OPS[(OPS.index(op) + 1) % len(OPS)], size
        if scenario.kind == "size":
            return op, size + 1
    return op, size


def _entry(seq: int, op: str, size: int, done: bool) -> Entry:
    return {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": seq,
        "profiling_name": f"gloo:{op}",
        "input_sizes": [[size]],
        "input_dtypes": ["Float"],
        "state": "completed" if done else "scheduled",
        "is_p2p": False,
    }
