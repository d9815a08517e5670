"""An operator of one's own with a gradient and a fake kernel, called by name and by its object."""

import torch


@torch.library.custom_op("conformance::thrice", mutates_args=())
def thrice(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@thrice.register_fake
def fake(x):
    return torch.empty_like(x)


def backward(ctx, grad):
    return grad * 3


thrice.register_autograd(backward)


def main(rank, world_size):
    x = torch.ones(2, requires_grad=True)
    torch.ops.conformance.thrice(thrice(x)).sum().backward()
    return x.grad, thrice(torch.ones(1, device="meta")).shape
