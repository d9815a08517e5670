"""Where ranks meet that join a group themselves: `init_process_group("gloo")`, as in every tutorial.

torch's own way holds for one meeting. Where a script destroys its group and makes another, rank 0
takes the store away with the first one while others may already ask it for the second, and who is
through gloo's connections first closes them while others still connect. Measured with torch 2.13,
4 ranks, seven times `init_process_group("gloo"); destroy_process_group()`: torchrun 4 of 4 runs
failed or hung, processes started by fork 6 of 8. So here the store stays as long as rank 0 does, no
meeting sees keys of another, and each ends for all at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from datetime import timedelta
from typing import Any


class _Meetings:
    """The meetings of this rank, by their place: address, port and world size."""

    def __init__(self, create: Any, barrier: Any) -> None:
        self.plain_create, self.plain_barrier = create, barrier
        self.over: Counter[tuple[str, int, int]] = Counter()
        self.begun: tuple[str, int, int] | None = None
        self.stores: list[Any] = []

    def create_store(
        self,
        hostname: str,
        port: int,
        rank: int,
        world_size: int,
        timeout: timedelta,
        use_libuv: bool = True,
    ) -> Any:
        """Open a store as torch does for env:// and tcp://, for the next meeting at this place."""
        from torch._C._distributed_c10d import PrefixStore

        store = self.plain_create(hostname, port, rank, world_size, timeout, use_libuv)
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            return store  # somebody else's, who knows about its meetings
        if rank == 0:
            self.stores.append(store)  # all of one port share a server, which the first one keeps
        self.begun = place = (hostname, port, world_size)
        # Counted when it is over, not when it begins: where one rank's call fails and another's does
        # not, both still speak of the same meeting.
        return PrefixStore(f"meeting {self.over[place]} of {world_size}", store)

    def barrier_after_init(self) -> int:
        """Tell init_process_group to wait, at its end, until every rank has got there."""
        asked_by_init = sys._getframe(1).f_code.co_name == "init_process_group"
        if not asked_by_init or self.begun is None:
            return int(self.plain_barrier())
        self.over[self.begun] += 1
        self.begun = None
        return 1


def install() -> None:
    """Have torch's rendezvous in this process keep its meetings apart."""
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    meet: Any = importlib.import_module("torch.distributed.rendezvous")
    meetings = _Meetings(meet._create_c10d_store, c10d._is_barrier_after_init)
    meet._create_c10d_store = meetings.create_store
    c10d._is_barrier_after_init = meetings.barrier_after_init
