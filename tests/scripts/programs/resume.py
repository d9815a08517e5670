"""Save a checkpoint on rank 0, start again from it, and continue."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir()
path = os.path.join(folder, f"checkpoint-{os.environ['MASTER_PORT']}.pt")


def build(checkpoint=None):
    torch.manual_seed(5)
    model = torch.nn.Linear(4, 4)
    if checkpoint is not None:
        model.load_state_dict(checkpoint["model"])
    ddp = DDP(model)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.1)
    if checkpoint is not None:
        optimizer.load_state_dict(checkpoint["optimizer"])
    return ddp, optimizer


def train(ddp, optimizer, steps):
    for step in steps:
        torch.manual_seed(1000 * step + rank)
        x = torch.randn(8, 4)
        loss = (ddp(x) - x.cumsum(-1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach_(), op=dist.ReduceOp.AVG)
        if rank == 0:
            print(f"step {step}: {loss.item():.4f}")


ddp, optimizer = build()
train(ddp, optimizer, range(3))
if rank == 0:
    torch.save(
        {"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, path
    )
dist.barrier()
checkpoint = torch.load(path)
ddp, optimizer = build(checkpoint)
train(ddp, optimizer, range(checkpoint["step"], 6))
dist.barrier()
if rank == 0:
    os.remove(path)
dist.destroy_process_group()
