"""reduce_scatter of a tensor whose length does not divide."""

import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    dist.reduce_scatter_tensor(torch.zeros(1), torch.ones(3))
