"""The record decorator around main."""

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

LIKE = "torchrun"


@record
def main(rank, world_size):
    x = torch.ones(1)
    dist.all_reduce(x)
    return x
