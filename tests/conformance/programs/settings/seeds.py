"""The module level seeds all generators and draws: every rank goes on from there."""

import random

import numpy as np
import torch


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


seed_everything(5)
first = torch.rand(2), random.random(), np.random.rand()


def main(rank, world_size):
    return torch.rand(2), random.random(), float(np.random.rand()), torch.initial_seed()
