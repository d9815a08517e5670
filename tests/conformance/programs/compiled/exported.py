"""torch.export of a module of the cell."""

import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def main(rank, world_size):
    program = torch.export.export(Net(), (torch.ones(2),))
    return program.module()(torch.tensor([-1.0, float(rank)]))
