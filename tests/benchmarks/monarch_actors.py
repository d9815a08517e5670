"""An actor, imported by Monarch's processes, that adds up numbers over a gloo group."""

from __future__ import annotations

import torch
import torch.distributed as dist
from monarch.actor import Actor, current_rank, endpoint


class Adder(Actor):
    """One of `world_size` actors, which join one process group."""

    def __init__(self, world_size: int) -> None:
        dist.init_process_group("gloo", rank=current_rank().rank, world_size=world_size)

    @endpoint
    def add(self) -> torch.Tensor:
        x = torch.ones(4)
        dist.all_reduce(x)
        return x
