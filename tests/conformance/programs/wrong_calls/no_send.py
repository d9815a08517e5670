"""Rank 1 receives what rank 0 never sends; rank 0 is done."""

import torch
import torch.distributed as dist

FAILS = "RuntimeError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    if rank == 1:
        dist.recv(torch.zeros(1), src=0)
    return "done"
