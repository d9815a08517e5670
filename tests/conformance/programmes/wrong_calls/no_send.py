"""Rank 1 receives what rank 0 never sends; rank 0 is done."""

import torch
import torch.distributed as dist

FAILS = "left"


def main(rank, world_size):
    if rank == 1:
        dist.recv(torch.zeros(1), src=0)
    return "done"
