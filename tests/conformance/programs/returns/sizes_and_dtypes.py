"""Shapes, dtypes and devices."""

import torch


def main(rank, world_size):
    x = torch.zeros(2, 3, dtype=torch.float16)
    return x.shape, x.dtype, x.device, x.stride()
