"""Infinite values and NaN, as numbers and in tensors."""

import torch


def main(rank, world_size):
    inf, nan = float("inf"), float("nan")
    return [inf, -inf, nan, complex(nan, inf)], torch.tensor([inf, nan, -inf])
