"""A compiled module, forward and backward."""

import torch


def main(rank, world_size):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU(), torch.nn.Linear(3, 1))
    fast = torch.compile(net, backend="aot_eager")
    fast(torch.ones(2, 3)).sum().backward()
    return net[0].weight.grad
