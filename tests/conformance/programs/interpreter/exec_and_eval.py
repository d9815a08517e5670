"""exec and eval with the cell's names."""

import torch


def main(rank, world_size):
    space = {"torch": torch}
    exec("def f(x):\n    return torch.ones(x) * 2", space)
    return space["f"](2), eval("rank + world_size")
