"""Ranks load a checkpoint that nobody saved."""

import torch

FAILS = "FileNotFoundError"


def main(rank, world_size):
    return torch.load("there-is-no-such-checkpoint.pt")
