"""One rank raises while the others wait for it."""

import torch
import torch.distributed as dist

FAILS = "ValueError"
WORLD_SIZE = 3


def main(rank, world_size):
    if rank == 1:
        raise ValueError("rank 1 has bad data")
    dist.all_reduce(torch.ones(1))
