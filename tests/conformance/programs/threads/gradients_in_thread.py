"""backward runs in a thread while main waits for it."""

import threading

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1))

    def train():
        model(torch.ones(1, 2) * (rank + 1)).sum().backward()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    return model.module.weight.grad
