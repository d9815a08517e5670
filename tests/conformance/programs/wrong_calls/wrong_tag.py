"""A message with tag 1, waited for with tag 2."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    if rank == 0:
        dist.send(torch.ones(1), dst=1, tag=1)
    else:
        dist.recv(torch.zeros(1), src=0, tag=2)
