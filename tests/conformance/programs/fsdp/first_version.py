"""FullyShardedDataParallel, the older wrapper, says on a CPU what it needs or goes through."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = FSDP(torch.nn.Linear(4, 2), device_id=torch.device("cpu"))
    try:
        model(torch.ones(1, 4)).sum().backward()
    except Exception as error:
        return type(error).__name__
    return "went through", sum(p.numel() for p in model.parameters())
