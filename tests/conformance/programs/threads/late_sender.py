"""A rank sleeps for two seconds before it sends; the other one waits."""

import time

import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.tensor([float(rank)])
    if rank == 0:
        time.sleep(2)
    dist.all_reduce(x)
    return x
