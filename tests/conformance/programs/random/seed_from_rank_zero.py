"""Rank 0 draws a seed and hands it to all: then all draw alike."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    seed = torch.randint(0, 2**31, (1,))
    dist.broadcast(seed, src=0)
    torch.manual_seed(seed.item())
    drawn = [None] * world_size
    dist.all_gather_object(drawn, torch.rand(1).item())
    return len(set(drawn))
