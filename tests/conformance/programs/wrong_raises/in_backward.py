"""An error in the backward of an autograd function of the cell."""

import torch

FAILS = "RuntimeError"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("no gradient today")


def main(rank, world_size):
    Broken.apply(torch.ones(1, requires_grad=True)).backward()
