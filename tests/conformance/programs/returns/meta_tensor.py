"""main returns a tensor on the meta device, which has no values."""

import torch

DIFFERS = {
    "untraced": ("CannotReturn", "a tensor without values cannot travel; the error says so"),
    "launch": ("CannotReturn", "a tensor without values cannot travel; the error says so"),
    "ranks": ([None, None], "a cell's value that is no plain data is printed on the rank"),
}


def main(rank, world_size):
    return torch.empty(2, device="meta")
