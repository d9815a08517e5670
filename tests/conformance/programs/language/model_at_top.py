"""A model and an optimizer made at module level."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def main(rank, world_size):
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
    optimizer.step()
    return model.weight
