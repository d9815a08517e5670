"""Inside a rank: a receiver that is as late as it may be, for the exercise `safe_buffers`.

    sender: fill(buffer, i), isend, ... wait() --store--> "message i may be taken now"
    receiver:                                             recv of message i

It takes a message only once its sender waits for that message or one sent after it, so that a
buffer which is filled too early has lost what was in it, on every run. The word goes through the
group's store and leaves no event in the trace.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

from helpers.exercises.strict_transfers import (
    Flight,
    Transfers,
    keep_busy,
    watch_transfers,
)
from helpers.ranks.inside import span

FILL = "fill"
"""The spans are called "fill 0", "fill 1", ..."""
COME, NO_MORE = "come", "no more"
DEADLINE = timedelta(seconds=20)


def to_slow_receiver(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    dst: int,
    messages: torch.Tensor,
) -> dict[Any, Any]:
    """Call the answer on every rank but `dst`, which takes the messages late."""
    count, length = messages.shape
    if rank == dst:
        return {src: _take(src, count, length) for src in range(world_size) if src != dst}
    sender = _Sender(rank, messages)
    with watch_transfers(sender):
        answer(sender.fill, count, length, dst)
        sender.release(len(sender.sends), NO_MORE)
    return {"buffers": len({t.data_ptr() for t in sender.filled})}


class _Sender(Transfers):
    """Fills buffers for the answer, and lets the receiver know what it may take."""

    def __init__(self, rank: int, messages: torch.Tensor) -> None:
        super().__init__()
        self.rank, self.messages = rank, messages
        self.filled: list[torch.Tensor] = []  # kept, so that no two have the same address by turns
        self._told = 0

    def fill(self, buffer: torch.Tensor, index: int) -> None:
        """Write message `index` into `buffer`."""
        if not 0 <= index < len(self.messages):
            raise ValueError(
                f"this case has {len(self.messages)} messages, counted from 0: there is no message "
                f"{index} to fill."
            )
        wanted = self.messages[index]
        if buffer.shape != wanted.shape or buffer.dtype != wanted.dtype:
            raise ValueError(
                f"fill() writes {len(wanted)} elements of float32, but this buffer has the shape "
                f"{tuple(buffer.shape)} and the dtype {buffer.dtype}. Make it by torch.empty(length)."
            )
        self.filled.append(buffer)
        with span(f"{FILL} {index}"):
            keep_busy()
            buffer.copy_(wanted)

    def sent(self, tensor: torch.Tensor, peer: int, work: dist.Work) -> None:
        super().sent(tensor, peer, work)
        self.filled.append(tensor)  # a copy of a buffer is a buffer too

    def waits(self, work: dist.Work) -> Flight | None:
        flight = super().waits(work)
        if flight in self.sends:
            self.release(next(i for i, s in enumerate(self.sends) if s is flight) + 1)
        return flight

    def release(self, until: int, last: str = "") -> None:
        """Let the receiver take the messages before `until`."""
        store = _get_default_store()
        for index in range(self._told, until):
            store.set(_key(self.rank, index), COME)
        self._told = max(self._told, until)
        if last:
            store.set(_key(self.rank, self._told), last)


def _take(src: int, count: int, length: int) -> torch.Tensor:
    """Receive the messages of one rank, each as late as possible."""
    store, taken = _get_default_store(), []
    store.set_timeout(DEADLINE)
    for index in range(count):
        if store.get(_key(src, index)).decode() == NO_MORE:
            break
        taken.append(torch.zeros(length))
        dist.recv(taken[-1], src=src)
    return torch.stack(taken) if taken else torch.zeros(0, length)


def _key(rank: int, index: int) -> str:
    return f"slow receiver/{rank}/{index}"
