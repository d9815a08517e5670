"""Naive data parallel without a seed or a broadcast: the ranks' weights differ."""

import torch
import torch.distributed as dist


def main(rank, world_size):
    model = torch.nn.Linear(4, 1)
    model(torch.ones(2, 4)).sum().backward()
    with torch.no_grad():
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p -= 0.1 * p.grad / world_size
    weights = [torch.empty(1, 4) for _ in range(world_size)]
    dist.all_gather(weights, model.weight.detach())
    return torch.equal(weights[0], weights[1])
