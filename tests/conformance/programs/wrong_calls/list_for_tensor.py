"""A list where a tensor is needed."""

import torch.distributed as dist

FAILS = "TypeError"


def main(rank, world_size):
    dist.all_reduce([1.0, 2.0])
