# %% all_gather | The functional all_gather_tensor and reduce_scatter_tensor.
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


def main(rank, world_size):
    x = torch.tensor([[rank, rank + 0.5]])
    every = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    part = funcol.reduce_scatter_tensor(torch.arange(4.0), "sum", 0, dist.group.WORLD)
    return funcol.wait_tensor(every), funcol.wait_tensor(part)


# %% all_reduce | The functional all_reduce returns a new tensor and does not change its input.
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


def main(rank, world_size):
    x = torch.tensor([1.0, 2.0]) * (rank + 1)
    y = funcol.all_reduce(x, "sum", dist.group.WORLD)
    return y + 0, x


# %% all_to_all | The functional all_to_all_single with equal parts.
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.arange(3.0) + 10 * rank
    y = funcol.all_to_all_single(x, [1, 1, 1], [1, 1, 1], dist.group.WORLD)
    return y + 0


# %% async_tensor | The result of a functional collective waits automatically on first use.
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


def main(rank, world_size):
    y = funcol.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
    name = type(y).__name__
    return name, (y * 2).tolist(), type(y.sum()).__name__


# %% coalesced | all_reduce_coalesced sums a list of tensors in one call.
import torch
import torch.distributed as dist


def main(rank, world_size):
    xs = [torch.ones(2), torch.full((3,), 2.0 + rank)]
    dist.all_reduce_coalesced(xs)
    return xs


# %% coalescing | The coalescing manager issues several sums as one; its work is waited for at the end.
import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager


def main(rank, world_size):
    xs = [torch.full((2,), float(i + rank)) for i in range(3)]
    with _coalescing_manager(async_ops=True) as manager:
        for x in xs:
            dist.all_reduce(x)
    manager.wait()
    return xs


# %% differentiable | torch.distributed.nn.functional: gradients flow through an all_gather.
import torch
import torch.distributed.nn.functional as distnn


def main(rank, world_size):
    x = torch.tensor([rank + 1.0], requires_grad=True)
    parts = distnn.all_gather(x)
    loss = sum((i + 1) * part.pow(2).sum() for i, part in enumerate(parts))
    loss.backward()
    return loss.detach(), x.grad


# %% ops_by_name | The operators behind the functional collectives, called by their names.
import torch
import torch.distributed as dist


def main(rank, world_size):
    name = dist.group.WORLD.group_name
    y = torch.ops._c10d_functional.all_reduce(torch.ones(2) * rank, "sum", name)
    y = torch.ops._c10d_functional.wait_tensor(y)
    return y
