"""static_graph=True with a layer that is used twice."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(self.layer(x))


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(Twice(), static_graph=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 3) + rank).sum().backward()
    return model.module.layer.weight.grad
