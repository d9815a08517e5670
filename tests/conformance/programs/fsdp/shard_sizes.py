"""Each rank keeps a part of each parameter, as a DTensor."""

import torch
from torch.distributed.fsdp import fully_shard

WORLD_SIZE = 3


def main(rank, world_size):
    model = torch.nn.Linear(4, 7)
    fully_shard(model)
    kinds = {type(p).__name__ for p in model.parameters()}
    return sorted(kinds), [list(p.to_local().shape) for p in model.parameters()]
