"""Two groups are used in different orders."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    a, b = dist.new_group(), dist.new_group()
    first, second = (a, b) if rank == 0 else (b, a)
    x = torch.ones(1)
    dist.all_reduce(x, group=first)
    dist.all_reduce(x, group=second)
