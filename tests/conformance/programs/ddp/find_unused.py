"""find_unused_parameters=True lets a rank leave a branch out."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)

    def forward(self, x, branch):
        return self.a(x) if branch == 0 else self.a(x) + self.b(x)


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(Net(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 2), branch=rank).sum().backward()
    return model.module.a.bias.grad, model.module.b.bias.grad
