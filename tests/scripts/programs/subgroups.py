"""Two groups of ranks, each with a model of its own, and statistics over all ranks."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
half = world_size // 2
groups = [dist.new_group(list(range(half))), dist.new_group(list(range(half, world_size)))]
team = rank // half
group = groups[team]
torch.manual_seed(team)
model = DDP(torch.nn.Linear(3, 1), process_group=group)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(30 + rank)
for step in range(3):
    x = torch.randn(6, 3)
    loss = (model(x) - team).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach_(), op=dist.ReduceOp.AVG, group=group)
    if rank == team * half:
        print(f"team {team} step {step}: {loss.item():.4f}")
gathered = [torch.zeros(1) for _ in range(world_size)] if rank == 0 else None
dist.gather(loss.reshape(1), gathered, dst=0)
if rank == 0:
    print("last losses", [round(value.item(), 4) for value in gathered])
dist.destroy_process_group()
