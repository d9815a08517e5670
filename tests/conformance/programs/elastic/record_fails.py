"""The record decorator around a main that fails on rank 1."""

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

LIKE = "torchrun"
FAILS = "LookupError"


@record
def main(rank, world_size):
    if rank == 1:
        raise LookupError("rank 1 finds nothing")
    dist.barrier()
