"""Built on the meta device, then given memory and values."""

import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    fully_shard(model)
    model.to_empty(device="cpu")
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.5)
    return model(torch.ones(1, 4))
