"""Work around ordinary programs' hangs and failures that are caused by torch.

**Groups that are created and destroyed more than once**, by `init_process_group("gloo")` as in every
tutorial. torch's rendezvous works only once per process. If a script destroys its group and creates a new
one, rank 0 closes the store with the first group while other ranks may already use it for the second. Also,
the first rank to finish connecting closes gloo's connections while others still connect. Measured with torch
2.13 and 4 ranks running `init_process_group("gloo"); destroy_process_group()` seven times: under torchrun 4
of 4 runs failed or hung, and with forked processes 6 of 8. So in this course the store stays open as long as
rank 0 runs, each rendezvous has separate keys, and a rendezvous ends for all ranks at the same time.

**Groups that end with a DDP module.** If a function destroys its group and returns, the reducer inside the
model owns the last reference to the group. torch destroys a `Reducer`, and with it the group, while holding
the GIL. The group's destructor joins gloo's threads, one of which may be waiting for the GIL. Measured with
torch 2.13: 9 of 16 such launches hung, and so did 4 to 16 of 24 processes forked without this project. A
reference held from Python avoids this, because it is released without the GIL.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from datetime import timedelta
from typing import Any

# Groups whose reducer is being destroyed, or was destroyed after the most recent reducer was made.
_released_groups: list[Any] = []


def install() -> None:
    """Make this process's torch separate consecutive rendezvous, and keep groups longer than reducers."""
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    rendezvous_module: Any = importlib.import_module("torch.distributed.rendezvous")
    rendezvous = _RendezvousState(rendezvous_module._create_c10d_store, c10d._is_barrier_after_init)
    rendezvous_module._create_c10d_store = rendezvous.create_store
    c10d._is_barrier_after_init = rendezvous.barrier_after_init
    _keep_groups_of_reducers()


class _RendezvousState:
    """This rank's state of its rendezvous at each place, which is an address, a port and a world size."""

    def __init__(self, create: Any, barrier: Any) -> None:
        self.create_plain_store, self.plain_barrier_after_init = create, barrier
        self.completed: Counter[tuple[str, int, int]] = Counter()
        self.pending: tuple[str, int, int] | None = None
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

        store = self.create_plain_store(hostname, port, rank, world_size, timeout, use_libuv)
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            return store  # The agent's store already separates consecutive rendezvous.
        if rank == 0:
            self.stores.append(store)  # Later stores share the server of the first one.
        self.pending = place = (hostname, port, world_size)
        # Count a rendezvous when it is over, not when it begins: if the call fails on only one rank, all
        # ranks still refer to the same rendezvous.
        return PrefixStore(f"rendezvous {self.completed[place]} of {world_size}", store)

    def barrier_after_init(self) -> int:
        """Return 1 to make init_process_group wait, at its end, until every rank has reached that point."""
        is_called_by_init = sys._getframe(1).f_code.co_name == "init_process_group"
        if not is_called_by_init or self.pending is None:
            return int(self.plain_barrier_after_init())
        self.completed[self.pending] += 1
        self.pending = None
        return 1


def _keep_groups_of_reducers() -> None:
    dist = vars(importlib.import_module("torch.distributed"))
    torch_reducer: Any = dist["Reducer"]
    group: type = dist["ProcessGroup"]

    class Reducer(torch_reducer):  # type: ignore[misc]
        __doc__ = torch_reducer.__doc__

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            _released_groups.clear()  # By now the reducers of these groups have been destroyed.
            arguments = [*args, *kwargs.values()]
            self._groups = [argument for argument in arguments if isinstance(argument, group)]

        def __del__(self) -> None:
            # This runs before the reducer's destructor in C++.
            _released_groups.extend(self._groups)

    Reducer.__module__, Reducer.__qualname__ = torch_reducer.__module__, torch_reducer.__qualname__
    dist["Reducer"] = Reducer
