"""Run answers of notebook 03: keep each transfer's Work, and provide `fill` and `compute`.

    answer -- isend, irecv --> Work, also kept here --> completed here if the answer never waits

If the answer drops a Work, its transfer may or may not be lost. Because every Work is kept, a rule on the
trace can report missing waits in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from helpers.checks.adversarial import BufferInUse
from helpers.checks.adversarial import _DeferredWork as DeferredWork
from helpers.ranks.rank_context import span

BATCH, COMPUTE, FILL = "batch", "compute", "fill"
"""Names of spans: "batch of 2", "compute", "fill 0"."""
_FINISH_TIMEOUT = timedelta(seconds=3)
"""Timeout for a transfer that the answer never waited for. A matching message arrives sooner."""
_BUSY_TURNS = 5


class WaitedTwice(RuntimeError):
    """The answer calls `wait()` twice on one transfer. Under gloo the second call may never return."""


@dataclass(eq=False)
class InFlightTransfer:
    """A transfer in flight."""

    tensor: torch.Tensor
    work: DeferredWork
    waited: bool = False

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        if self.waited:
            raise WaitedTwice(
                "wait() is called twice on one transfer, and gloo might block forever in the second call. "
                "Wait for each transfer once."
            )
        self.waited = True
        return DeferredWork.wait(self.work, *args, **kwargs)


@contextmanager
def keep_transfers() -> Iterator[list[InFlightTransfer]]:
    """Keep every transfer in an adversarial world; at the end, complete the transfers without a wait."""
    transfers: list[InFlightTransfer] = []

    def keep_work(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(group: Any, tensors: list[torch.Tensor], *args: Any) -> Any:
            work = real(group, tensors, *args)
            if isinstance(work, DeferredWork):  # otherwise torch has issued the transfer
                transfers.append(InFlightTransfer(tensors[0], work))
                work.wait = transfers[-1].wait  # type: ignore[method-assign]
            return work

        return call

    before = {name: getattr(dist.ProcessGroup, name) for name in ("send", "recv", "recv_anysource")}
    for name, real in before.items():
        setattr(dist.ProcessGroup, name, keep_work(real))
    try:
        yield transfers
        unseen = getattr(dist.Work.wait, "__wrapped__", dist.Work.wait)
        for transfer in transfers:
            if not transfer.waited:
                try:
                    unseen(transfer.work._work, _FINISH_TIMEOUT)
                except RuntimeError:
                    break  # this transfer has no partner, as the trace shows
    finally:
        for name, real in before.items():
            setattr(dist.ProcessGroup, name, real)


def run_keeping_transfers(
    answer: Callable[..., Any], rank: int, world_size: int, *args: Any
) -> Any:
    """Call the answer like kind RANKS, and keep its transfers."""
    with keep_transfers():
        return answer(rank, world_size, *args)


def run_recording_batches(
    answer: Callable[..., Any], rank: int, world_size: int, *args: Any
) -> Any:
    """Record an empty span "batch of 2" for each call of batch_isend_irecv with two operations."""
    real: Callable[..., None] = distributed_c10d._check_p2p_op_list

    def check(ops: Any) -> None:
        real(ops)
        with span(f"{BATCH} of {len(ops)}"):
            pass

    distributed_c10d._check_p2p_op_list = check  # type: ignore[assignment]
    try:
        return run_keeping_transfers(answer, rank, world_size, *args)
    finally:
        distributed_c10d._check_p2p_op_list = real


def run_with_compute(
    answer: Callable[..., Any], rank: int, world_size: int, x: torch.Tensor, result: torch.Tensor
) -> Any:
    """Pass the answer a `compute()` that records a span and returns `result`."""

    def compute() -> torch.Tensor:
        with span(COMPUTE):
            _keep_busy()
        return result.clone()

    return run_keeping_transfers(answer, rank, world_size, x, compute)


def run_fill_and_send(
    answer: Callable[..., Any], rank: int, world_size: int, dst: int, messages: torch.Tensor
) -> Any:
    """Call the answer on all ranks but `dst`, which receives the messages of one sender after another.

    Return the number of filled or sent buffers on a sender, and the received messages by rank on `dst`.
    """
    count, length = messages.shape
    if rank == dst:
        boxes = {src: torch.zeros(count, length) for src in range(world_size) if src != dst}
        for src, rows in boxes.items():
            for row in rows:
                dist.recv(row, src=src)
        return boxes
    with keep_transfers() as transfers:
        filler = _BufferFiller(messages, transfers)
        answer(filler.fill, count, length, dst)
    used = [*filler.buffers, *(transfer.tensor for transfer in transfers)]
    return len({tensor.data_ptr() for tensor in used})


@dataclass
class _BufferFiller:
    """Writes messages into the answer's buffers, if they are free."""

    messages: torch.Tensor
    transfers: list[InFlightTransfer]
    buffers: list[torch.Tensor] = field(default_factory=list)
    """The buffers, kept alive so that no two successive buffers get the same address."""

    def fill(self, buffer: torch.Tensor, index: int) -> None:
        """Write message `index` into `buffer`."""
        if not 0 <= index < len(self.messages):
            raise ValueError(
                f"message {index} doesn't exist: there are {len(self.messages)} messages, numbered from 0."
            )
        wanted = self.messages[index]
        if buffer.shape != wanted.shape or buffer.dtype != wanted.dtype:
            raise ValueError(
                f"fill() writes {len(wanted)} float32 elements, but your buffer has shape "
                f"{tuple(buffer.shape)} and dtype {buffer.dtype}. Create it with torch.empty(length)."
            )
        for number, transfer in enumerate(self.transfers):
            if not transfer.waited and _overlap(transfer.tensor, buffer):
                raise BufferInUse(
                    f"message {index} would overwrite the buffer of message {number}, which might still be "
                    f"in flight: wait for message {number} first, or fill another buffer."
                )
        self.buffers.append(buffer)
        with span(f"{FILL} {index}"):
            _keep_busy()
            buffer.copy_(wanted)


def _keep_busy() -> None:
    """Compute for a moment, so that a span is visible next to the transfers."""
    busy = torch.full((160, 160), 1 / 160)
    for _ in range(_BUSY_TURNS):
        busy = busy @ busy


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two contiguous tensors share bytes. (Tensors of transfers are contiguous.)"""
    (a, b), (c, d) = (
        (t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in (one, other)
    )
    return a < d and c < b
