"""torch.func: grad, vmap and functional_call."""

import torch
from torch.func import functional_call, grad, vmap


def main(rank, world_size):
    net = torch.nn.Linear(2, 1, bias=False)
    weights = {"weight": torch.tensor([[1.0, rank]])}
    y = functional_call(net, weights, (torch.ones(3, 2),))
    return (
        y,
        grad(lambda x: x**3)(torch.tensor(2.0)),
        vmap(torch.dot)(torch.eye(2), torch.ones(2, 2)),
    )
