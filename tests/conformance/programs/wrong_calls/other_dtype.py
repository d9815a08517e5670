"""Ranks give dtypes of unequal width: bytes of one are read as the other, without a word."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.ones(4, dtype=torch.float32 if rank == 0 else torch.float64)
    dist.broadcast(x, src=0)
    return x
