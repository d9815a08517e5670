"""A child that takes too long: TimeoutExpired, caught."""

import subprocess

import torch.distributed as dist


def main(rank, world_size):
    said = "in time"
    if rank == 0:
        try:
            subprocess.run(["sleep", "30"], timeout=1)
        except subprocess.TimeoutExpired:
            said = "too late"
    dist.barrier()
    return said
