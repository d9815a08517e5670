"""The buffer of an isend is changed after its wait only: the right order."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.zeros(1000)
    if rank == 0:
        work = dist.isend(x + 1, dst=1)
        work.wait()
        x.fill_(9)
    else:
        dist.recv(x, src=0)
    return x.sum()
