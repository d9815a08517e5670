"""Four micro-batches a step under no_sync give the gradient of the whole batch."""

from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1))
    batch = torch.arange(16.0).reshape(8, 2) + rank
    for i, part in enumerate(batch.chunk(4)):
        with model.no_sync() if i < 3 else nullcontext():
            (model(part).sum() / 8).backward()
    return model.module.weight.grad
