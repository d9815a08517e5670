"""A gradient hook on rank 1 raises in the backward pass."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "FloatingPointError"


def main(rank, world_size):
    model = DDP(torch.nn.Linear(2, 1))

    def look(grad):
        if rank == 1:
            raise FloatingPointError("a gradient of rank 1 is odd")

    y = model(torch.ones(1, 2))
    y.register_hook(look)
    y.sum().backward()
