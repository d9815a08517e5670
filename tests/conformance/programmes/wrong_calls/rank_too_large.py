"""A destination that no rank has: gloo waits for it."""

import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    dist.send(torch.ones(1), dst=world_size)
