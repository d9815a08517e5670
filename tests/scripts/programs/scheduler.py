"""A scheduler that follows the loss, and early stopping; both use the mean over all ranks."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ReduceLROnPlateau


def mean_of(value):
    mean = torch.tensor(float(value))
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    return mean.item()


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
scheduler = ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
torch.manual_seed(20 + rank)
patience, best = 0, float("inf")
for step in range(12):
    x = torch.randn(4, 4)
    loss = (model(x) - x.prod(-1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = mean_of(loss.item())
    scheduler.step(value)
    patience = 0 if value < best else patience + 1
    best = min(best, value)
    if patience > 3:
        print(f"rank {rank} stops at step {step}")
        break
dist.barrier()
if rank == 0:
    print(f"best {best:.4f} rate {optimizer.param_groups[0]['lr']:.4f}")
dist.destroy_process_group()
