"""A print in a compiled function."""

import torch


def main(rank, world_size):
    @torch.compile(backend="eager")
    def f(x):
        x = x + 1
        print("in the middle of rank", rank)
        return x * 2

    return f(torch.ones(1))
