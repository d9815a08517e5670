"""A collective before there is a group."""

import torch
import torch.distributed as dist

INIT = False
FAILS = "ValueError"


def main(rank, world_size):
    dist.all_reduce(torch.ones(1))
