"""One rank reduces, the other broadcasts."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    x = torch.ones(1)
    if rank == 0:
        dist.all_reduce(x)
    else:
        dist.broadcast(x, src=0)
    dist.barrier()
