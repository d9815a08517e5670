"""fully_shard: a step of Adam on shards gives what a step on the whole gives."""

import copy

import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    whole = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    model = copy.deepcopy(whole)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    x = torch.arange(8.0).reshape(2, 4)
    for net in (model, whole):
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        net(x).sum().backward()
        optimizer.step()
    pairs = zip(model.parameters(), whole.parameters(), strict=True)
    return all(torch.allclose(p.full_tensor(), q) for p, q in pairs)
