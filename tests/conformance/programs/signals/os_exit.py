"""os._exit(4) on rank 0: its process is gone at once."""

import os

import torch.distributed as dist

FAILS = "exit 4"


def main(rank, world_size):
    if rank == 0:
        os._exit(4)
    dist.barrier()
