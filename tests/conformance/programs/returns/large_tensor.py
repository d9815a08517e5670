"""Ten megabytes from each rank."""

import torch


def main(rank, world_size):
    g = torch.Generator().manual_seed(rank)
    return torch.randn(2_500_000, generator=g)
