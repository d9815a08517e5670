"""Dropout without a seed leaves out other elements on each rank."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    y = torch.nn.functional.dropout(torch.ones(64), p=0.5)
    every = [torch.empty(64) for _ in range(world_size)]
    dist.all_gather(every, y)
    return torch.equal(every[0], every[1])
