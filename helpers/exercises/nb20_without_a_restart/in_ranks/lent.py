"""Right answers to 20.1 and 20.2, and `join`. These are the basis of 20.3."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import PrefixStore, Store


def quorum(
    store: Store,
    number: int,
    me: int,
    step: int,
    expected: Sequence[int],
    replicas: int,
    patience: float,
) -> dict[int, int]:
    """Agree on the members. Return {member: its step}, which is the same on all replicas that ask."""

    def key(about: object, of: int = number) -> str:
        return f"round {of}, {about}"

    def decision(of: int) -> dict[int, int]:
        pairs = (
            part.split(":") for part in store.get(key("decided", of)).decode()[1:-1].split(",")
        )
        return {int(r): int(s) for r, s in pairs}

    store.set(key(f"replica {me}"), str(step))
    give_up = time.monotonic() + patience
    newest = max(decision(number - 1).values()) if store.check([key("decided", number - 1)]) else -1
    while not store.check([key("decided")]):
        here = [r for r in range(replicas) if store.check([key(f"replica {r}")])]
        mine = {r: int(store.get(key(f"replica {r}"))) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() > give_up
        if enough and max(mine.values()) >= newest:
            store.compare_set(key("decided"), "", repr(mine))
        else:
            time.sleep(0.005)
    return decision(number)


def rejoin(
    rank: int,
    world_size: int,
    steps: Sequence[int],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> int:
    """Copy the state of the first rank with the most steps to all ranks. Return the number of steps."""
    most = max(steps)
    if min(steps) < most:
        source = list(steps).index(most)
        states: list[Any] = [None]
        if rank == source:
            states = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(states, src=source)
        if steps[rank] < most:
            model.load_state_dict(states[0][0])
            optimizer.load_state_dict(states[0][1])
    return most


def join(store: Store, number: int, members: Sequence[int], me: int, patience: float) -> None:
    """Leave the current group, and form a new one with these members."""
    if dist.is_initialized():
        dist.destroy_process_group()
    # a group's name has a counter, and some ranks have counted a group that others failed to join
    dist.distributed_c10d._world.group_count = 0
    dist.init_process_group(
        "gloo",
        store=PrefixStore(f"group {number}", store),
        rank=list(members).index(me),
        world_size=len(members),
        timeout=timedelta(seconds=patience),
    )
