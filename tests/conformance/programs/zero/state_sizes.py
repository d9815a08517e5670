"""Each rank keeps the optimizer's state of its own parameters only."""

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    kept = sum(s["exp_avg"].numel() for s in optimizer.optim.state.values())
    return kept, sum(p.numel() for p in model.parameters())
