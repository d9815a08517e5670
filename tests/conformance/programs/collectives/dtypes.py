"""Sums of each floating dtype are rounded as that dtype rounds."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    got = []
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = torch.tensor([0.1, 1000.3], dtype=dtype) * (rank + 1)
        dist.all_reduce(x)
        got.append(x)
    return got
