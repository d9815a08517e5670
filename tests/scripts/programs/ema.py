"""Gradients averaged by hand, and an exponential moving average of the weights on every rank."""

import copy

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(11)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def average_gradients():
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size


@torch.no_grad()
def update_average(decay=0.9):
    for average, parameter in zip(ema.parameters(), model.parameters()):
        average.lerp_(parameter, 1 - decay)


torch.manual_seed(rank)
for step in range(5):
    x = torch.randn(10, 6)
    loss = (model(x) - x[:, :2]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    average_gradients()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    update_average()
print(f"average {sum(p.abs().sum() for p in ema.parameters()).item():.4f}")
dist.destroy_process_group()
