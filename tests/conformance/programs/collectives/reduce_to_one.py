"""reduce: only rank 1 has the sum that counts."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.tensor([2.0**rank])
    dist.reduce(x, dst=1)
    return x if rank == 1 else None
