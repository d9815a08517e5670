"""Rank 1 waits for more elements than are broadcast."""

import torch
import torch.distributed as dist

FAILS = "SIGABRT"


def main(rank, world_size):
    x = torch.ones(1000 if rank == 0 else 10)
    dist.broadcast(x, src=0)
    return x
