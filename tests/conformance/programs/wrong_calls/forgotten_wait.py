"""A receive whose wait is forgotten: its request is dropped at once, and the ranks hang."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    x = torch.zeros(1)
    if rank == 0:
        dist.irecv(x, src=1)
    else:
        dist.isend(torch.ones(1), dst=0)
    dist.barrier()
    return "went on"
