"""A worker of torchrun leaves with code 3."""

import sys

import torch.distributed as dist

LIKE = "torchrun"
FAILS = "SystemExit"


def main(rank, world_size):
    if rank == 1:
        sys.exit(3)
    dist.barrier()
