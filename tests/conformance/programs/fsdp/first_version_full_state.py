"""FullyShardedDataParallel: the whole parameters, summoned."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = FSDP(torch.nn.Linear(4, 2), device_id=torch.device("cpu"))
    with FSDP.summon_full_params(model):
        shapes = [list(p.shape) for p in model.parameters()]
    return shapes
