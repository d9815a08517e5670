# %% adam_steps | ZeroRedundancyOptimizer has the same results as Adam on every rank.
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def train(zero):
    torch.manual_seed(0)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)))
    if zero:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 4), step + 1.0)).sum().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def main(rank, world_size):
    one, two = train(True), train(False)
    return torch.equal(one, two), one


# %% consolidate | The whole state gathered on rank 0 for a checkpoint.
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(3)])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        return sorted(optimizer.state_dict()["state"])
    try:
        optimizer.state_dict()
    except RuntimeError:
        return "only rank 0 has it"


# %% frozen_parameters | A frozen parameter next to trained ones, in groups with different learning rates.
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    model[0].weight.requires_grad_(False)
    groups = [
        {"params": [model[0].bias], "lr": 0.1},
        {"params": list(model[1].parameters()), "lr": 0.5},
    ]
    optimizer = ZeroRedundancyOptimizer(groups, torch.optim.SGD, lr=1.0)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return [p.detach() for p in model.parameters()]


# %% lr_schedule | A scheduler of learning rates over a ZeroRedundancyOptimizer.
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    model = torch.nn.Linear(2, 1)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    rates = []
    for _ in range(5):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])
    return rates


# %% state_dict_not_gathered | state_dict before consolidate_state_dict is an error.
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer

FAILS = "RuntimeError"


def main(rank, world_size):
    model = torch.nn.Linear(2, 2)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    return len(optimizer.state_dict())


# %% state_sizes | Each rank only keeps the optimizer state of its part of the parameters.
import torch
from torch.distributed.optim import ZeroRedundancyOptimizer


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    kept = sum(s["exp_avg"].numel() for s in optimizer.optim.state.values())
    return kept, sum(p.numel() for p in model.parameters())
