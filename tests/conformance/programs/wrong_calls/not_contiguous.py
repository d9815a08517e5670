"""A view that is not contiguous, sent point to point."""

import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    x = torch.arange(6.0).reshape(2, 3).t()
    if rank == 0:
        dist.send(x, dst=1)
    else:
        dist.recv(x, src=0)
