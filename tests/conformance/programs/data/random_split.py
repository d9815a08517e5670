"""random_split with a seeded generator."""

import torch
from torch.utils.data import random_split


def main(rank, world_size):
    parts = random_split(range(10), [7, 3], generator=torch.Generator().manual_seed(42))
    return [list(part) for part in parts]
