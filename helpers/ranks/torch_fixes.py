"""Work around cases in which torch itself hangs or fails in ordinary programs.

**Groups that are made and destroyed more than once** (`init_process_group("gloo")`, as in every tutorial).
torch's own rendezvous works once per process. If a script destroys its group and makes a new one, rank 0
closes the store with the first group while other ranks may already use it for the second. Also, the rank that
finishes connecting first closes gloo's connections while others still connect. Measured with torch 2.13 and 4
ranks that run `init_process_group("gloo"); destroy_process_group()` seven times: under torchrun 4 of 4 runs
failed or hung, with forked processes 6 of 8. So here the store stays open as long as rank 0 lives, each
rendezvous has its own keys, and a rendezvous ends for all ranks at the same time.

**Groups that end with a DDP module.** If a function destroys its group and returns, the reducer inside the
model owns the last reference to the group. torch destroys a `Reducer`, and with it the group, while holding
the GIL. The group's destructor joins gloo's threads, one of which may be waiting for the GIL. Measured with
torch 2.13: 9 of 16 such launches hung, and 4 to 16 of 24 processes that were forked without this project. A
reference held from Python avoids this, because it is released without the GIL.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from datetime import timedelta
from typing import Any

# Groups whose reducer is being destroyed, or has been since the last reducer was made.
_released: list[Any] = []


def install() -> None:
    """Make torch in this process keep rendezvous apart, and keep groups longer than reducers."""
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    meet: Any = importlib.import_module("torch.distributed.rendezvous")
    own = _Rendezvous(meet._create_c10d_store, c10d._is_barrier_after_init)
    meet._create_c10d_store = own.create_store
    c10d._is_barrier_after_init = own.barrier_after_init
    _hold_groups_of_reducers()


class _Rendezvous:
    """What this rank stores about each rendezvous, by its place (address, port and world size)."""

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
        """Open a store as torch does for env:// and tcp://, for the next rendezvous at this place."""
        from torch._C._distributed_c10d import PrefixStore

        store = self.plain_create(hostname, port, rank, world_size, timeout, use_libuv)
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            return store  # The agent's store keeps each rendezvous apart itself.
        if rank == 0:
            self.stores.append(store)  # Later stores share the server of the first one.
        self.begun = place = (hostname, port, world_size)
        # Count a rendezvous when it is over, not when it begins: if the call fails on only one rank, all
        # still mean the same rendezvous.
        return PrefixStore(f"rendezvous {self.over[place]} of {world_size}", store)

    def barrier_after_init(self) -> int:
        """Return 1 to make init_process_group wait, at its end, until every rank has reached that point."""
        asked_by_init = sys._getframe(1).f_code.co_name == "init_process_group"
        if not asked_by_init or self.begun is None:
            return int(self.plain_barrier())
        self.over[self.begun] += 1
        self.begun = None
        return 1


def _hold_groups_of_reducers() -> None:
    dist = vars(importlib.import_module("torch.distributed"))
    plain: Any = dist["Reducer"]
    group: type = dist["ProcessGroup"]

    class Reducer(plain):  # type: ignore[misc]
        __doc__ = plain.__doc__

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            _released.clear()  # By now the reducers of these groups are destroyed.
            every = [*given, *named.values()]
            self._groups = [each for each in every if isinstance(each, group)]

        def __del__(self) -> None:
            # Runs before the destructor of the reducer in C++.
            _released.extend(self._groups)

    Reducer.__module__, Reducer.__qualname__ = plain.__module__, plain.__qualname__
    dist["Reducer"] = Reducer
