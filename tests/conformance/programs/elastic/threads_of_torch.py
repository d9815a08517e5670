"""torchrun gives each worker one thread for its sums."""

import os

import torch

LIKE = "torchrun"


def main(rank, world_size):
    return torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")
