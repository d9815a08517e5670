"""A barrier inside `if rank == 0`, and a receive for the other one."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    if rank == 0:
        dist.barrier()
        dist.send(torch.ones(1), dst=1)
    else:
        dist.recv(torch.zeros(1), src=0)
        dist.barrier()
