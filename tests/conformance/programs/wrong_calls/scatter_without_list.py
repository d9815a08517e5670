"""scatter from a rank that gives no list."""

import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.scatter(torch.zeros(1), src=0)
