"""manual_seed: the same numbers everywhere."""

import torch


def main(rank, world_size):
    torch.manual_seed(1234)
    return torch.rand(3), torch.randn(2), torch.randperm(6), torch.randint(0, 100, (4,))
