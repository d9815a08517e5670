"""The norm of all shards' gradients together is what is clipped."""

import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    fully_shard(model)
    model(torch.ones(2, 4) * 3).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return norm.full_tensor()
