"""A function of the cell travels to the other rank and is called there."""

import torch.distributed as dist


def double(x):
    return 2 * x


def main(rank, world_size):
    functions = [None] * world_size
    dist.all_gather_object(functions, double)
    return [f(rank + 1) for f in functions], functions[0] is double
