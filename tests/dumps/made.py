"""Make the NCCL and TorchComms cases by hand, because no machine of this project's tests has GPUs.

`python -m tests.dumps.made` replaces the folders `tests/dumps/cases/nccl_*` and `torchcomms_*`. Fields and
types are those of `FlightRecorderDetail.hpp` (`getCollectiveTrace`, `dump_json`); names of operations are
those of `ProcessGroupNCCL.cpp` and of torch's tests of its analyzer (`test_fr_analysis.py`). No NCCL job
wrote these files.
"""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("cases")
Ranks = list[int]
START_NS = 1_760_000_000_000_000_000
TORCH = "/env/lib/python3.11/site-packages/torch"


class Rank:
    """One rank's recorder."""

    def __init__(self, rank: int, groups: dict[str, tuple[str, Ranks]], version: str) -> None:
        self.rank, self.version, self.groups = rank, version, groups
        self.entries: list[dict[str, Any]] = []
        self.counts: dict[tuple[str, bool], int] = {}
        self.first = 0

    def call(
        self,
        op: str,
        size: list[int],
        line: int,
        *,
        state: str = "completed",
        group: str = "0",
        out: list[int] | None = None,
        dtype: str = "Float",
        peers: str = "",
    ) -> Rank:
        """Record a call. peers: "0->1" for a send, "1<-0" for a receive."""
        is_p2p = bool(peers)
        self.counts[group, is_p2p] = self.counts.get((group, is_p2p), 0) + 1
        number = len(self.entries) + self.first
        created = START_NS + number * 1_000_000 + self.rank * 1000
        name = op.strip("_")
        self.entries.append(
            {
                "frames": [
                    _frame(name, f"{TORCH}/distributed/distributed_c10d.py", 2800),
                    _frame("wrapper", f"{TORCH}/distributed/c10d_logger.py", 83),
                    _frame("train_step", "/job/train.py", line),
                    _frame("<module>", "/job/train.py", 90),
                ],
                "record_id": number,
                "pg_id": list(self.groups).index(group),
                "process_group": (group, self.groups[group][0]),
                "collective_seq_id": self.counts.get((group, False), 0),
                "p2p_seq_id": self.counts.get((group, True), 0),
                "op_id": number + 1,
                "profiling_name": f"nccl:{op} {peers}".rstrip(),
                "time_created_ns": created,
                "input_sizes": [size],
                "input_dtypes": [dtype],
                "output_sizes": [out if out is not None else size],
                "output_dtypes": [dtype],
                "state": state,
                "time_discovered_started_ns": None if state == "scheduled" else created + 1000,
                "time_discovered_completed_ns": created + 9000 if state == "completed" else None,
                "retired": state == "completed",
                "timeout_ms": 600000,
                "is_p2p": is_p2p,
            }
        )
        if self.version >= "2.9":
            self.entries[-1] |= {"thread_name": "python", "thread_id": "140000000000000"}
        return self

    def skip(self, count: int, group: str = "0") -> Rank:
        """Count calls that the recorder has overwritten."""
        self.counts[group, False] = self.counts.get((group, False), 0) + count
        self.first += count
        return self

    def dump(self) -> dict[str, Any]:
        config = {
            name: {"name": name, "desc": about, "ranks": str(ranks)}
            for name, (about, ranks) in self.groups.items()
            if self.rank in ranks
        }
        return {
            "version": self.version,
            "nccl_version": "2.21.5",
            "pg_config": config,
            "pg_status": {},
            "entries": self.entries,
        }


def _frame(name: str, filename: str, line: int) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


def world(
    size: int, version: str = "2.10", more: dict[str, tuple[str, Ranks]] | None = None
) -> list[Rank]:
    """Return the recorders of a job. Each has made two calls together with the others."""
    groups = {"0": ("default_pg", list(range(size))), **(more or {})}
    ranks = [Rank(rank, groups, version) for rank in range(size)]
    for rank in ranks:
        rank.call("broadcast", [10], 11).call("all_reduce", [100], 20)
    return ranks


def size_mismatch() -> list[Rank]:
    ranks = world(4, "2.4")
    for rank in ranks:
        rank.call("all_reduce", [99 if rank.rank == 3 else 100], 20, state="started")
    return ranks


def type_mismatch() -> list[Rank]:
    ranks = world(4, "2.5")
    for rank in ranks:
        op, line = ("_all_gather_base", 31) if rank.rank == 1 else ("all_reduce", 20)
        out = [400] if rank.rank == 1 else [100]
        rank.call(op, [100], line, out=out, state="started")
    return ranks


def dtype_mismatch() -> list[Rank]:
    ranks = world(2, "2.7")
    for rank in ranks:
        dtype = "BFloat16" if rank.rank else "Float"
        rank.call("all_reduce", [100], 20, dtype=dtype, state="started")
    return ranks


def missing_call() -> list[Rank]:
    """The ring buffer of torch has overwritten the first 5,000 calls; rank 2 has left its loop."""
    groups = {"0": ("default_pg", [0, 1, 2, 3])}
    ranks = [Rank(rank, groups, "2.9").skip(5000 + (rank == 0)) for rank in range(4)]
    for rank in ranks:
        for _ in range(rank.rank == 0, 6):
            rank.call("all_reduce", [100], 20)
        if rank.rank != 2:
            rank.call("all_reduce", [100], 20, state="started")
            rank.call("all_reduce", [100], 20, state="scheduled")
    return ranks


def missing_dump() -> list[Rank]:
    ranks = world(4)
    for rank in ranks:
        rank.call("all_reduce", [100], 20, state="started")
    return [rank for rank in ranks if rank.rank != 2]


def not_started() -> list[Rank]:
    ranks = world(4)
    for rank in ranks:
        rank.call("all_reduce", [100], 20, state="scheduled" if rank.rank == 3 else "started")
    return ranks


def partly_completed() -> list[Rank]:
    ranks = world(4)
    for rank in ranks:
        rank.call("broadcast", [8], 25, state="started" if rank.rank == 1 else "completed")
    return ranks


def send_without_recv() -> list[Rank]:
    """Rank 0 sends to rank 1, which is already in the next collective."""
    ranks = world(3)
    ranks[0].call("send", [8], 40, peers="0->1", state="started")
    ranks[1].call("all_reduce", [100], 20, state="started")
    ranks[2].call("all_reduce", [100], 20, state="started")
    return ranks


def send_cycle() -> list[Rank]:
    ranks = world(2)
    for rank in ranks:
        rank.call("send", [8], 40, peers=f"{rank.rank}->{1 - rank.rank}", state="started")
    return ranks


def tensor_parallel() -> list[Rank]:
    """Two groups of two ranks; in the second, rank 3 skips a call."""
    more = {"1": ("mesh_tp", [0, 1]), "2": ("mesh_tp", [2, 3])}
    ranks = world(4, more=more)
    for rank in ranks:
        group = "1" if rank.rank < 2 else "2"
        rank.call("all_reduce", [64], 50, group=group)
        if rank.rank != 3:
            state = "completed" if rank.rank < 2 else "started"
            rank.call("all_reduce", [64], 52, group=group, state=state)
        if rank.rank != 2:
            rank.call("all_reduce", [100], 60, state="started")
    return ranks


def unequal_exchange() -> list[Rank]:
    ranks = world(2)
    ranks[0].call("all_to_all", [8], 45, out=[8], state="started")
    ranks[1].call("all_to_all", [8], 45, out=[6], state="started")
    return ranks


def healthy() -> list[Rank]:
    ranks = world(4)
    for rank in ranks:
        rank.call("_reduce_scatter_base", [400], 30, out=[100])
        rank.call("_all_gather_base", [100], 31, out=[400])
    return ranks


def torchcomms_missing() -> list[Rank]:
    ranks = world(3)
    for rank in ranks:
        if rank.rank != 1:
            rank.call("all_reduce", [7], 33, state="scheduled")
    return ranks


MADE = {
    "nccl_size_mismatch": size_mismatch,
    "nccl_type_mismatch": type_mismatch,
    "nccl_dtype_mismatch": dtype_mismatch,
    "nccl_missing_call": missing_call,
    "nccl_missing_dump": missing_dump,
    "nccl_not_started": not_started,
    "nccl_partly_completed": partly_completed,
    "nccl_send_without_recv": send_without_recv,
    "nccl_send_cycle": send_cycle,
    "nccl_tensor_parallel": tensor_parallel,
    "nccl_unequal_exchange": unequal_exchange,
    "nccl_healthy": healthy,
    "torchcomms_missing_call": torchcomms_missing,
}


def write(name: str) -> None:
    """Write the dumps of a case: pickles for NCCL, JSON without stacks for TorchComms."""
    folder = CASES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for rank in MADE[name]():
        dump = rank.dump()
        if name.startswith("torchcomms"):
            for entry in dump["entries"]:
                del entry["frames"]
                entry["time_discovered_completed_ns"] = entry["time_discovered_completed_ns"] or 0
            text = json.dumps(dump, separators=(",", ":"))
            (folder / f"torchcomm_fr_trace_{rank.rank}").write_text(text)
        else:
            (folder / f"nccl_trace_rank_{rank.rank}").write_bytes(pickle.dumps(dump, protocol=2))


if __name__ == "__main__":
    for case in MADE:
        write(case)
