"""Sixteen megabytes from rank 0 to rank 1, summed there."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    n = 4 * 1024 * 1024
    if rank == 0:
        dist.send(torch.arange(n, dtype=torch.int32), dst=1)
        return 0
    x = torch.empty(n, dtype=torch.int32)
    dist.recv(x, src=0)
    return x.sum().item()
