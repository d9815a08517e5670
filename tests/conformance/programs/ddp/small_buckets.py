"""Buckets far smaller than a layer give the same gradients as one large bucket."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def gradients(rank, bucket_cap_mb):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(16, 16) for _ in range(4)]
    model = DDP(torch.nn.Sequential(*layers), bucket_cap_mb=bucket_cap_mb)
    model(torch.ones(2, 16) * (rank + 1)).square().mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def main(rank, world_size):
    small, large = gradients(rank, 0.0001), gradients(rank, 25)
    return torch.equal(small, large), small.norm() > 0
