# %% buffers | Buffers of rank 0 reach the others at each forward: running means agree.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    model = DDP(torch.nn.BatchNorm1d(2))
    for _ in range(3):
        model(torch.ones(4, 2) * (rank + 1) + torch.arange(4.0).unsqueeze(1)).sum().backward()
    seen_before = model.module.running_mean.clone()
    model(torch.zeros(4, 2))
    return seen_before, model.module.num_batches_tracked


# %% different_models | Ranks build models of different sizes: DDP refuses them.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "RuntimeError"


def main(rank, world_size):
    DDP(torch.nn.Linear(2, 2 + rank))


# %% find_unused | find_unused_parameters=True lets a rank leave a branch out.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)

    def forward(self, x, branch):
        return self.a(x) if branch == 0 else self.a(x) + self.b(x)


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(Net(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 2), branch=rank).sum().backward()
    return model.module.a.bias.grad, model.module.b.bias.grad


# %% fp16_hook | torch's fp16 hook compresses the gradients.
import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(3, 1))
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    model(torch.full((1, 3), 0.1 + rank)).sum().backward()
    return model.module.weight.grad


# %% hook_raises | A gradient hook on rank 1 raises in the backward pass.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "FloatingPointError"


def main(rank, world_size):
    model = DDP(torch.nn.Linear(2, 1))

    def look(grad):
        if rank == 1:
            raise FloatingPointError("a gradient of rank 1 is odd")

    y = model(torch.ones(1, 2))
    y.register_hook(look)
    y.sum().backward()


# %% join | Ranks with unequal numbers of batches succeed under join.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    with model.join():
        for i in range(3 + 2 * rank):
            optimizer.zero_grad()
            model(torch.tensor([[float(i)]])).sum().backward()
            optimizer.step()
            steps += 1
    return steps, model.module.weight


# %% logging_data | DDP's logging data.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    model = DDP(torch.nn.Linear(10, 10))
    data = model._get_ddp_logging_data()
    return data["world_size"], data["total_parameter_size_bytes"], data["backend_name"]


# %% model_averaging | Local steps with an average every second one (periodic model averaging).
import torch
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager


def main(rank, world_size):
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    averager = PeriodicModelAverager(period=2, warmup_steps=0)
    seen = []
    for step in range(4):
        model.weight.grad = torch.ones(1, 1)
        with torch.no_grad():
            model.weight += (rank + 1) * (step + 1)
        averager.average_parameters(model.parameters())
        seen.append(model.weight.item())
    return seen


# %% no_seed_no_ddp | Naive data parallel without a seed or a broadcast: the ranks' weights differ.
import torch
import torch.distributed as dist


def main(rank, world_size):
    model = torch.nn.Linear(4, 1)
    model(torch.ones(2, 4)).sum().backward()
    with torch.no_grad():
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p -= 0.1 * p.grad / world_size
    weights = [torch.empty(1, 4) for _ in range(world_size)]
    dist.all_gather(weights, model.weight.detach())
    return torch.equal(weights[0], weights[1])


# %% no_sync | Two backward passes under one sum of gradients: no_sync keeps the first one local.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1, bias=False))
    with model.no_sync():
        model(torch.tensor([[1.0, 0.0]]) * (rank + 1)).sum().backward()
    local = model.module.weight.grad.clone()
    model(torch.tensor([[0.0, 1.0]]) * (rank + 1)).sum().backward()
    return local, model.module.weight.grad


# %% one_step | DDP averages the gradients of two ranks.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(3, 2))
    x = torch.arange(6.0).reshape(2, 3) * (rank + 1)
    model(x).sum().backward()
    return model.module.weight.grad, model.module.bias.grad


# %% own_hook | A custom hook counts buckets and halves the sum.
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def count_and_reduce(state, bucket):
    state.append(bucket.index())
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0] / 2)


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 2))
    seen = []
    model.register_comm_hook(seen, count_and_reduce)
    model(torch.ones(1, 2) * rank).sum().backward()
    return seen, model.module.weight.grad


# %% powersgd | PowerSGD: low-rank gradients after the first steps.
import torch
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(16, 16, bias=False))
    state = powerSGD.PowerSGDState(
        None, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=1
    )
    model.register_comm_hook(state, powerSGD.powerSGD_hook)
    torch.manual_seed(rank)
    for _ in range(4):
        model.zero_grad()
        model(torch.randn(4, 16)).square().mean().backward()
    return int(torch.linalg.matrix_rank(model.module.weight.grad, atol=1e-5))


# %% small_buckets | Buckets far smaller than a layer give the same gradients as one large bucket.
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


# %% static_graph | static_graph=True with a layer that is used twice.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(self.layer(x))


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(Twice(), static_graph=True)
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 3) + rank).sum().backward()
    return model.module.layer.weight.grad


# %% sync_batchnorm | SyncBatchNorm is for GPUs: on the CPU it raises an error.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "ValueError"


def main(rank, world_size):
    net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm1d(2))
    model = DDP(net)
    return model(torch.ones(4, 2))


# %% training_loop | Five steps of SGD with momentum: all ranks end with the same weights.
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + rank)
    for _ in range(5):
        x, y = torch.randn(16, 4), torch.randn(16, 1)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    everyone = [torch.empty_like(flat) for _ in range(world_size)]
    dist.all_gather(everyone, flat)
    return all(torch.equal(flat, other) for other in everyone), flat.sum()


# %% unequal_starts | Ranks start with different weights: DDP broadcasts rank 0's weights.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD_SIZE = 3


def main(rank, world_size):
    torch.manual_seed(rank)
    before = torch.nn.Linear(2, 2)
    first = before.weight[0, 0].item()
    model = DDP(before)
    return first == model.module.weight[0, 0].item(), model.module.weight


# %% unequal_without_join | Ranks with unequal numbers of batches and no join: the longer one waits forever.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "RuntimeError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
    "script": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    model = DDP(torch.nn.Linear(1, 1))
    for i in range(3 + rank):
        model(torch.tensor([[float(i)]])).sum().backward()
    return "done"


# %% unused_fails | A parameter that is not used for the loss: the second step raises an error.
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

FAILS = "RuntimeError"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.used(x)


def main(rank, world_size):
    model = DDP(Net())
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
