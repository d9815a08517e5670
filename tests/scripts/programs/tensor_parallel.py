"""Tensor parallelism with a device mesh: one linear layer by columns, the next by rows."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


mesh = init_device_mesh("cpu", (int(__import__("os").environ["WORLD_SIZE"]),))
rank = dist.get_rank()
torch.manual_seed(0)
model = MLP()
parallelize_module(model, mesh, {"first": ColwiseParallel(), "second": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
torch.manual_seed(1)  # all ranks of a tensor parallel group have the same data
for step in range(4):
    x = torch.randn(6, 8)
    loss = (model(x) - x.roll(1, -1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        print(f"step {step}: {loss.item():.4f}")
print(f"shard {tuple(model.first.weight.to_local().shape)} on rank {rank}")
dist.destroy_process_group()
