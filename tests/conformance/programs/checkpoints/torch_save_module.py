"""A whole module of a class of the cell is saved and loaded by the same rank."""

import io

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)


def main(rank, world_size):
    torch.manual_seed(0)
    file = io.BytesIO()
    torch.save(Net(), file)
    file.seek(0)
    net = torch.load(file, weights_only=False)
    return type(net) is Net, net(torch.ones(1, 2)).detach()
