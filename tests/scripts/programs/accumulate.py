"""Gradient accumulation: no_sync for all micro-batches but the last."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

MICRO_BATCHES = 3

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1))
ddp = DDP(model, bucket_cap_mb=0.0001, gradient_as_bucket_view=True)
optimizer = torch.optim.RMSprop(ddp.parameters(), lr=1e-3)
torch.manual_seed(rank)
for step in range(4):
    for micro_batch in range(MICRO_BATCHES):
        is_last = micro_batch == MICRO_BATCHES - 1
        context = contextlib.nullcontext() if is_last else ddp.no_sync()
        with context:
            x = torch.randn(4, 6)
            loss = (ddp(x) - x.sum(1, keepdim=True)).square().mean()
            (loss / MICRO_BATCHES).backward()
    norm = torch.nn.utils.clip_grad_norm_(ddp.parameters(), 5.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: norm {norm:.4f}")
dist.destroy_process_group()
