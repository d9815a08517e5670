"""Training is stopped, kept in a file and gone on with: the end is the same."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def new():
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def train(model, optimizer, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        model(torch.full((1, 2), step + 1.0)).sum().backward()
        optimizer.step()


def main(rank, world_size):
    model, optimizer = new()
    train(model, optimizer, 0, 2)
    if rank == 0:
        torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, "last.pt")
    dist.barrier()
    train(model, optimizer, 2, 5)
    again, its = new()
    kept = torch.load("last.pt")
    again.load_state_dict(kept["m"])
    its.load_state_dict(kept["o"])
    train(again, its, 2, 5)
    dist.barrier()
    if rank == 0:
        os.unlink("last.pt")
    return torch.equal(model.module.weight, again.module.weight)
