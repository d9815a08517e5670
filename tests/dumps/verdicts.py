"""The expected explanation of each case, and the verdict of torch's own analyzer on the same files."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.dumps.plain_pickle import load_plain

CASES = Path(__file__).with_name("cases")


@dataclass(frozen=True)
class Expected:
    """kind, guilty: those of the diagnosis. words: parts of its summary."""

    kind: str
    guilty: tuple[int, ...]
    words: tuple[str, ...] = ()


EXPECTED = {
    "gloo_healthy": Expected("", ()),
    "gloo_missing_call": Expected(
        "missing_call", (2,), ("Rank 2 has not made collective 3", "train.py, line 29", "broadcast")
    ),
    "gloo_different_ops": Expected(
        "mismatched_collectives", (0,), ("rank 0 calls broadcast", "rank 1 calls all_reduce")
    ),
    "gloo_fewer_batches": Expected(
        "mismatched_collectives", (1,), ("rank 0 calls all_reduce", "rank 1 calls barrier")
    ),
    "gloo_group_order": Expected(
        "mismatched_collectives", (0, 1), ("groups", "train.py, line 30", "train.py, line 33")
    ),
    "gloo_recv_with_stacks": Expected(
        "missing_call", (2,), ("According to its stack, rank 2 is in recv at train.py, line 28",)
    ),
    "gloo_no_dump": Expected("no_dump", (1,), ("There is no dump of rank 1", "train.py, line 29")),
    "nccl_healthy": Expected("", ()),
    "nccl_size_mismatch": Expected(
        "different_shapes", (3,), ("all_reduce of 100 float32", "rank 3 calls all_reduce of 99")
    ),
    "nccl_type_mismatch": Expected(
        "mismatched_collectives", (1,), ("train.py, line 20", "train.py, line 31")
    ),
    "nccl_dtype_mismatch": Expected("different_shapes", (0, 1), ("different dtypes", "bfloat16")),
    "nccl_missing_call": Expected("missing_call", (2,), ("collective 5007", "ranks 0, 1 and 3")),
    "nccl_missing_dump": Expected("no_dump", (2,), ("There is no dump of rank 2",)),
    "nccl_not_started": Expected("not_started", (3,), ("rank 3 has only scheduled it",)),
    "nccl_partly_completed": Expected("partly_completed", (1,), ("but not on rank 1",)),
    "nccl_send_without_recv": Expected(
        "unmatched", (0, 1), ("rank 1 has not called the matching recv", "waits in all_reduce")
    ),
    "nccl_send_cycle": Expected("cycle", (0, 1), ("A cycle of sends",)),
    "nccl_tensor_parallel": Expected(
        "mismatched_collectives", (3,), ("Rank 3 has left out all_reduce (train.py, line 52)",)
    ),
    "nccl_unequal_exchange": Expected("different_shapes", (0, 1), ("send 16", "expect 14")),
    "torchcomms_missing_call": Expected(
        "missing_call", (1,), ("Rank 1 has not made collective 3",)
    ),
}


WRONG_BLAME = {"nccl_send_without_recv": {2}}
"""Ranks that torch's analyzer blames although they are right: it mistakes a send for a call of all ranks."""


def torch_verdict(folder: Path, *, add_names: bool = False) -> str:
    """Return a short form of the verdict of torch's analyzer on the dumps in a folder.

    add_names: write names and members of groups into gloo's dumps, without which the analyzer fails.
    """
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.config_manager import JobConfig

    dumps = {path.name: _load(path) for path in sorted(folder.iterdir()) if path.suffix != ".txt"}
    for name, dump in dumps.items():
        dump |= {"rank": int(name.rpartition("_")[2]), "host_name": name}
    if add_names:
        _add_names(dumps)
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("Flight Recorder")
    usual, logger.handlers = logger.handlers, [handler]
    try:
        args = JobConfig().parse_args(["--allow-incomplete-ranks"])
        version = next(iter(dumps.values()))["version"]
        database = build_db(dumps, args, version)
    except Exception as error:
        return f"fails: {type(error).__name__}: {error}"
    finally:
        logger.handlers = usual
    text = "\n".join(dict.fromkeys(messages))
    found = re.findall(
        r"Not all ranks joining collective, sequence number: \d+|missing ranks: .*", text
    )
    found += re.findall(r"Culprit rank \d+; Error type: \w+", text)
    found += re.findall(r"Input/output mismatch in the collective sequence number: \d+", text)
    found += re.findall(r"We cannot decide what's wrong|No errors found", text)
    if "MISMATCH" in text.splitlines():
        found.append("a table titled MISMATCH")
    failed = sum(not collective.pass_check for collective in database.collectives)
    unmatched = sum(call.collective_id is None for call in database.ncclcalls)
    if not found:
        found = [
            f"{failed} failed collectives, {unmatched} unmatched calls"
            if failed or unmatched
            else "all match"
        ]
    return "; ".join(dict.fromkeys(found))


def _add_names(dumps: dict[str, dict[str, Any]]) -> None:
    """Write into gloo's dumps the groups that each rank used. The default group has three ranks."""
    users: dict[str, set[int]] = {}
    for dump in dumps.values():
        for entry in dump["entries"]:
            name, about = entry["process_group"]
            users.setdefault(name, set()).update(
                {0, 1, 2} if about == "default_pg" else {dump["rank"]}
            )
    for dump in dumps.values():
        for name, about in {tuple(entry["process_group"]) for entry in dump["entries"]}:
            ranks = str(sorted(users[name]))
            dump["pg_config"][name] = {"name": name, "desc": about, "ranks": ranks}


def _load(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    dump: dict[str, Any] = json.loads(data) if data[:1] == b"{" else load_plain(data)
    return dump
