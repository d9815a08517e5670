"""Tensors and modules print as ever, with print options."""

import torch


def main(rank, world_size):
    torch.set_printoptions(precision=2, sci_mode=False)
    print(torch.tensor([1.23456, 1000.0]))
    print(torch.nn.Linear(2, 3))
    print(torch.zeros(2, 0), torch.float16)
