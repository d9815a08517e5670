"""Evaluation on rank 0 only, with the model inside DDP; the others wait at a barrier."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        loss = (model.module(x) - y).square().mean().item()
    model.train()
    return loss


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    weight = torch.randn(5, 1)
    model = DDP(
        torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 1))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(10 + rank)
    held_out = torch.randn(32, 5)
    for epoch in range(3):
        for _ in range(3):
            x = torch.randn(8, 5)
            loss = (model(x) - x @ weight).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {evaluate(model, held_out, held_out @ weight):.4f}")
        dist.barrier()
    dist.destroy_process_group()


main()
