"""Rank 0 skips a collective and is done: the other is left alone."""

import torch
import torch.distributed as dist

FAILS = "RuntimeError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    x = torch.ones(1)
    if rank > 0:
        dist.all_reduce(x)
    return x
