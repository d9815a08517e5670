"""Seeds that depend on the rank, in all three libraries."""

import random

import numpy as np
import torch


def main(rank, world_size):
    torch.manual_seed(rank)
    np.random.seed(rank)
    random.seed(rank)
    return torch.rand(2), np.random.rand(2), random.random()
