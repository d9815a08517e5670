"""An autograd function of the cell in a module of the cell."""

import torch


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1) * 10


def main(rank, world_size):
    x = torch.tensor([0.5, 2.0, -3.0], requires_grad=True)
    Clip.apply(x).sum().backward()
    return x.grad
