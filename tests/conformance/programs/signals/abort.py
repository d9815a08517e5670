"""os.abort on rank 1."""

import os

import torch.distributed as dist

FAILS = "SIGABRT"


def main(rank, world_size):
    if rank == 1:
        os.abort()
    dist.barrier()
