"""sys.exit(3) on one rank while the other waits."""

import sys

import torch.distributed as dist

FAILS = "SystemExit"


def main(rank, world_size):
    if rank == 1:
        sys.exit(3)
    dist.barrier()
