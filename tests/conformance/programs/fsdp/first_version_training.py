"""FullyShardedDataParallel takes two steps of SGD."""

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy


def main(rank, world_size):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    model = FSDP(net, sharding_strategy=ShardingStrategy.FULL_SHARD, device_id=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4) * (rank + 1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses
