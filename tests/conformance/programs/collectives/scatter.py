"""scatter: each rank gets its part of rank 0's list."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    parts = list(torch.arange(6.0).reshape(3, 2)) if rank == 0 else None
    mine = torch.empty(2)
    dist.scatter(mine, parts, src=0)
    return mine
