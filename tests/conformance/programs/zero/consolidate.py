"""The whole state gathered on rank 0 for a checkpoint."""

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(3)])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        return sorted(optimizer.state_dict()["state"])
    try:
        optimizer.state_dict()
    except RuntimeError:
        return "only rank 0 has it"
