"""A rank sleeps far longer than anybody waits."""

import time

import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    if rank == 0:
        time.sleep(3600)
    dist.barrier()
