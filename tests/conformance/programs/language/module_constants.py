"""Tensors, arrays and lambdas at module level."""

import numpy as np
import torch

WEIGHTS = torch.arange(3.0)
ARRAY = np.eye(2)
square = lambda x: x * x


def main(rank, world_size):
    WEIGHTS.add_(rank)
    return WEIGHTS, ARRAY.sum(), square(rank + 2)
