"""Sum one tensor over all ranks."""

import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    x = torch.tensor([float(rank), 0.1 * rank])
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    print(f"rank {rank} has {x.tolist()}")
    return x
