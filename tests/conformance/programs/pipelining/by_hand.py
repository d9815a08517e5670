"""A pipeline of three ranks by hand, with backward through received tensors."""

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2)
    if rank > 0:
        dist.recv(x, src=rank - 1)
        x.requires_grad_()
    y = layer(x)
    if rank < world_size - 1:
        dist.send(y.detach(), dst=rank + 1)
        grad = torch.empty_like(y)
        dist.recv(grad, src=rank + 1)
        y.backward(grad)
    else:
        y.sum().backward()
    if rank > 0:
        dist.send(x.grad, dst=rank - 1)
    return layer.weight.grad
