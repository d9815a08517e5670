"""An all_reduce within a compiled function."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    @torch.compile(backend="aot_eager")
    def f(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    return f(torch.tensor([1.0, rank]))
