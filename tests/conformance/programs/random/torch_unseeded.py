"""Ranks that set no seed draw different numbers from torch."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    drawn = [None] * world_size
    dist.all_gather_object(drawn, torch.rand(1).item())
    return {"all differ": len(set(drawn)) == world_size}
