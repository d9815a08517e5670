"""A parameter that takes no part in the loss: the second step says so."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "RuntimeError"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.used(x)


def main(rank, world_size):
    model = DDP(Net())
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
