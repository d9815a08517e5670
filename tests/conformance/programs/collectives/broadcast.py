"""Broadcast from the last rank, in three dtypes."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    got = []
    for dtype in (torch.float64, torch.int32, torch.bool):
        x = torch.full((2, 2), rank, dtype=dtype)
        dist.broadcast(x, src=world_size - 1)
        got.append(x)
    return got
