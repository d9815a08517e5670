"""Matrices that do not fit."""

import torch

FAILS = "RuntimeError"


def main(rank, world_size):
    return torch.ones(2, 3) @ torch.ones(2, 3)
