"""A rank fails between two collectives."""

import torch
import torch.distributed as dist

FAILS = "OverflowError"
WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.ones(1)
    dist.all_reduce(x)
    if rank == 2:
        raise OverflowError("the loss is too large")
    dist.all_reduce(x)
