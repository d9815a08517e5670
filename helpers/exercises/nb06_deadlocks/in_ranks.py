"""Run answers of notebook 06 with absent ranks, or with a file to prepare."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from helpers.ranks.rank_context import launch_folder, span

_ROLL_CALL_S = 0.1
"""Seconds after which a barrier with missing ranks times out, whatever timeout the answer passes."""
_PREPARE_S = 0.012
"""Seconds needed for preparing, so that a rank that does not wait reads too early."""
_MAX_WAIT_S = 2.0


def run_with_absent_ranks(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    batches: list[torch.Tensor],
    patience: float,
    absent: list[int],
) -> dict[str, Any]:
    """Call the answer on all ranks except the absent ones; return its value or, on rank 0, its error.

    The result also contains "asked": the timeouts passed to monitored_barrier, in seconds.
    """
    timeouts: list[float] = []
    if rank in absent:
        return {}
    present = [other for other in range(world_size) if other not in absent]
    with _record_roll_calls(rank, present if absent else [], timeouts):
        try:
            returned = answer(rank, world_size, batches, timedelta(seconds=patience))
        except Exception as error:
            if not absent:
                raise
            if rank:
                return {}
            # Return the error, so that the other ranks do not wait for a reply
            dist.destroy_process_group()
            return {"asked": timeouts, "raised": str(error)}
    return {"asked": timeouts, "returned": returned}


@contextmanager
def _record_roll_calls(rank: int, present: list[int], timeouts: list[float]) -> Iterator[None]:
    """Record the timeouts of monitored_barrier; shorten them once all ranks that are present are waiting.

    Without that condition, a rank that is merely late on a busy machine would also be named.
    """
    group: Any = dist.ProcessGroup
    real = group.monitored_barrier

    def call(self: Any, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        timeouts.append(timeout.total_seconds() if isinstance(timeout, timedelta) else -1.0)
        if present:
            store, most = dist.distributed_c10d._get_default_store(), timedelta(seconds=_MAX_WAIT_S)
            store.set(f"here {rank}", "yes")
            timeout = most
            if rank == 0:
                timeout = timedelta(seconds=_ROLL_CALL_S)
                with suppress(RuntimeError):
                    store.wait([f"here {other}" for other in present], most)
        real(self, timeout, wait_all_ranks)

    group.monitored_barrier = call
    try:
        yield
    finally:
        group.monitored_barrier = real


def run_with_file(
    answer: Callable[..., Any], rank: int, world_size: int, name: str, content: str | None
) -> Any:
    """Call the answer with `prepare`, which writes a file slowly, and `read`, which needs that file."""
    path = launch_folder() / hashlib.sha256(name.encode()).hexdigest()[:16]
    path.with_suffix(f".{rank}").touch()

    def prepare() -> None:
        with span("prepare"):
            late = time.monotonic() + _MAX_WAIT_S
            while len(list(path.parent.glob(f"{path.name}.*"))) < world_size:
                if time.monotonic() > late:
                    break
                time.sleep(0.001)  # wait until all ranks have reached the answer
            time.sleep(_PREPARE_S)
            path.write_text(content or "", encoding="utf-8")

    def read() -> str:
        with span("read"):
            return path.read_text(encoding="utf-8")

    return answer(rank, world_size, prepare, read)
