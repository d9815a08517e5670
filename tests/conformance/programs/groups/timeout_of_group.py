"""A group with a timeout of two seconds: the rank that waits longer gets an error."""

from datetime import timedelta

import torch
import torch.distributed as dist


def main(rank, world_size):
    group = dist.new_group(timeout=timedelta(seconds=2))
    if rank == 0:
        try:
            dist.all_reduce(torch.ones(1), group=group)
        except RuntimeError as error:
            said = "timed out" in str(error).lower() or "timeout" in str(error).lower()
        dist.barrier()
        return said
    dist.barrier()
    return "did not take part"
