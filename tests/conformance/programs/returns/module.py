"""main returns a module."""

import torch

DIFFERS = {
    "untraced": ("CannotReturn", "only plain data comes back; the error names state_dict"),
    "launch": ("CannotReturn", "only plain data comes back; the error names state_dict"),
    "ranks": ([None, None], "a cell's value that is no plain data is printed on the rank"),
}


def main(rank, world_size):
    return torch.nn.Linear(1, 1)
