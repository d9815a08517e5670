"""Programs like those in notebooks 09 to 17, for any world size. They return bytes, counts and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

from helpers import tensors_held

Tensor = torch.Tensor


def _layers(count: int = 3, width: int = 48) -> nn.Sequential:
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(count)])


def fsdp2(rank: int, world_size: int) -> list[int]:
    """Return the bytes held after each part of two steps."""
    with tensors_held() as held:
        model = _layers()
        for layer in model:
            fully_shard(layer)
        fully_shard(model, reshard_after_forward=False)
        optimizer, seen = torch.optim.AdamW(model.parameters()), []
        for _ in range(2):
            loss = model(torch.randn(5, 48)).square().sum()
            seen.append(held())
            loss.backward()
            del loss
            seen.append(held())
            optimizer.step()
            optimizer.zero_grad()
            seen.append(held())
        return seen


def hsdp(rank: int, world_size: int) -> list[tuple[int, ...]]:
    """Replicas of shards: the mesh of notebook 13."""
    wide = 2 if world_size % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (world_size // wide, wide), mesh_dim_names=("copies", "shards"))
    model = _layers()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model(torch.randn(4, 48)).square().sum().backward()
    return [tuple(p.grad.to_local().shape) for p in model.parameters()]  # type: ignore[union-attr]


def tp(rank: int, world_size: int) -> list[tuple[int, ...]]:
    """Tensor parallelism with sequence parallelism, as in notebook 15, and FSDP on the other dimension."""
    wide = 2 if world_size % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (world_size // wide, wide), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(
        nn.LayerNorm(32), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.Linear(32, 32)
    )
    plan = {
        "0": SequenceParallel(),
        "1": ColwiseParallel(),
        "3": RowwiseParallel(),
        "4": ColwiseParallel(output_layouts=None),
    }
    parallelize_module(model, mesh["tp"], plan)
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    model(torch.randn(2, 8, 32)).square().sum().backward()
    optimizer.step()
    return [tuple(p.to_local().shape) for p in model.parameters()]  # type: ignore[attr-defined]


def pp(rank: int, world_size: int) -> int:
    """Run 1F1B by hand, as in notebook 14. Return the maximum number of activations held at a time."""
    stage, microbatches = nn.Linear(16, 16), 2 * world_size
    waiting: list[tuple[Tensor, Tensor]] = []
    sent: list[tuple[Tensor, Any]] = []

    def forward() -> None:
        x = torch.randn(4, 16)
        if rank > 0:
            dist.recv(x, rank - 1)
        x.requires_grad_()
        y = stage(x)
        if rank < world_size - 1:
            sent.append((y, dist.isend(y.detach(), rank + 1)))
        waiting.append((x, y))

    def backward() -> None:
        x, y = waiting.pop(0)
        gradient = torch.ones_like(y)
        if rank < world_size - 1:
            dist.recv(gradient, rank + 1)
        y.backward(gradient)
        if rank > 0:
            assert x.grad is not None
            sent.append((x.grad, dist.isend(x.grad, rank - 1)))

    first = min(world_size - rank, microbatches)
    for _ in range(first):
        forward()
    most = len(waiting)
    for _ in range(microbatches - first):
        backward()
        forward()
    while waiting:
        backward()
    for _, work in sent:
        work.wait()
    return most


def cp(rank: int, world_size: int) -> tuple[int, ...]:
    """A ring of keys and values, as in notebook 16."""
    q, k, v = (torch.randn(2, 6, 8) for _ in range(3))
    total = torch.zeros(2, 6, 8)
    for _ in range(world_size):
        total += F.softmax(q @ k.transpose(1, 2), -1) @ v
        if world_size > 1:
            block = torch.stack([k, v])
            after = torch.empty_like(block)
            ops = [
                dist.P2POp(dist.isend, block, (rank + 1) % world_size),
                dist.P2POp(dist.irecv, after, (rank - 1) % world_size),
            ]
            for work in dist.batch_isend_irecv(ops):
                work.wait()
            k, v = after
    return tuple(total.shape)


def ep(rank: int, world_size: int) -> tuple[int, ...]:
    """Send the same number of tokens to each expert and back (notebook 17), as routing depends on values."""
    tokens = torch.randn(3 * world_size, 8)
    there = torch.empty_like(tokens)
    dist.all_to_all_single(there, tokens)
    back = torch.empty_like(tokens)
    dist.all_to_all_single(back, nn.Linear(8, 8)(there).detach())
    load = torch.full((world_size,), float(len(tokens)))
    dist.all_reduce(load)
    return tuple(back.shape)


def ddp(rank: int, world_size: int) -> tuple[int, ...]:
    """Run two steps with buckets, one of them accumulated."""
    model = DistributedDataParallel(_layers(), bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        with model.no_sync():
            model(torch.randn(4, 48)).sum().backward()
        model(torch.randn(4, 48)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    return tuple(model.module[0][0].weight.shape)


def collectives(rank: int, world_size: int) -> int:
    """Run each collective once, with roots and separate groups."""
    x, parts = torch.ones(world_size * 2, 3), torch.empty(2, 3)
    dist.broadcast(x, src=world_size - 1)
    dist.reduce(x, dst=0, op=dist.ReduceOp.MAX)
    dist.all_gather([torch.empty(2, 3) for _ in range(world_size)], parts)
    dist.all_gather_single(torch.empty(world_size * 2, 3), parts)
    dist.reduce_scatter_single(parts, x)
    root = rank == world_size - 1
    dist.scatter(parts, list(x.chunk(world_size)) if root else None, src=world_size - 1)
    dist.gather(
        parts, [torch.empty(2, 3) for _ in range(world_size)] if root else None, dst=world_size - 1
    )
    dist.all_to_all([torch.empty(2, 3) for _ in range(world_size)], list(x.chunk(world_size)))
    evens = dist.new_group(list(range(0, world_size, 2)))
    if rank % 2 == 0:
        dist.all_reduce(x, group=evens)
    dist.barrier()
    return len(dist.get_process_group_ranks(evens)) if rank % 2 == 0 else 0


# A program, and whether it needs tensors with memory.
PROGRAMS: dict[Callable[[int, int], Any], bool] = {
    fsdp2: False,
    hsdp: False,
    tp: False,
    pp: False,
    cp: False,
    ep: False,
    ddp: True,
    collectives: False,
}
