"""state_dict before consolidate_state_dict is an error."""

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer

FAILS = "RuntimeError"


def main(rank, world_size):
    model = torch.nn.Linear(2, 2)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    return len(optimizer.state_dict())
