"""gather with a list on every rank."""

import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    x = torch.ones(1)
    dist.gather(x, [torch.zeros(1) for _ in range(world_size)], dst=0)
