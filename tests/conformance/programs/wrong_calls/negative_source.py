"""A negative source in broadcast."""

import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    dist.broadcast(torch.ones(1), src=-1)
