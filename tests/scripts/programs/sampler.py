"""DistributedSampler over a data set whose last batch is smaller."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(50, 6)
dataset = TensorDataset(x, x.sum(1, keepdim=True))
model = DDP(torch.nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
sampler = DistributedSampler(dataset, shuffle=True)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
torch.manual_seed(rank)
for epoch in range(3):
    sampler.set_epoch(epoch)
    total, count = torch.zeros(2), 0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        total += torch.tensor([loss.item() * len(inputs), len(inputs)])
        count += 1
    dist.all_reduce(total)
    print(f"epoch {epoch}: {count} batches, mean loss {(total[0] / total[1]).item():.4f}")
dist.destroy_process_group()
