"""Rank 0 skips a collective and is done: the other is left alone."""

import torch
import torch.distributed as dist

FAILS = "left"


def main(rank, world_size):
    x = torch.ones(1)
    if rank > 0:
        dist.all_reduce(x)
    return x
