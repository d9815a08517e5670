"""A rank sends to itself: torch refuses."""

import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.send(torch.ones(1), dst=rank)
