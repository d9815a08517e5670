"""A parameter, and a tensor that needs a gradient."""

import torch


def main(rank, world_size):
    p = torch.nn.Parameter(torch.ones(2) * rank)
    return p, p * 2
