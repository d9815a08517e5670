"""Short programs, one for each way of starting communication. Each returns a number."""

from __future__ import annotations

import torch
import torch.distributed as dist


def python_calls(rank: int, world_size: int) -> float:
    x = torch.ones(4)
    if rank == 0:
        dist.send(x, 1)
    elif rank == 1:
        dist.recv(x, 0)
    dist.broadcast(x, 0)
    parts = [torch.empty(4) for _ in range(world_size)]
    dist.all_gather(parts, x)
    dist.barrier()
    return float(sum(p.sum() for p in parts))


def asynchronous(rank: int, world_size: int) -> float:
    x, y = torch.ones(1000), torch.ones(10)
    works = [dist.all_reduce(x, async_op=True), dist.all_reduce(y, async_op=True)]
    for work in works:
        work.wait()
    return float(x[0] + y[0])


def inference(rank: int, world_size: int) -> float:
    with torch.inference_mode():
        x = torch.ones(4)
        dist.all_reduce(x)
        return float(x[0])


def functional(rank: int, world_size: int) -> float:
    import torch.distributed._functional_collectives as funcol

    x = funcol.all_reduce(torch.ones(4), "sum", dist.group.WORLD)
    y = funcol.all_gather_tensor(torch.ones(2), 0, dist.group.WORLD)
    return float(x[0] + y.sum())


def reduce_scattered(rank: int, world_size: int) -> list[float]:
    import torch.distributed._functional_collectives as funcol

    parts = torch.arange(2.0 * world_size)
    mine = funcol.reduce_scatter_tensor(parts, "sum", 0, dist.group.WORLD)
    return [float(each) for each in mine]


def dtensor(rank: int, world_size: int) -> float:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (world_size,))
    weight = distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)])
    return float(weight.redistribute(mesh, [Replicate()]).to_local().sum())


def ddp(rank: int, world_size: int) -> float:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for _ in range(2):
        model(torch.ones(2, 8)).sum().backward()
    grad = model.module.bias.grad
    assert grad is not None
    return float(grad[0])


def fsdp2(rank: int, world_size: int) -> float:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    fully_shard(model, mesh=init_device_mesh("cpu", (world_size,)))
    model(torch.ones(2, 8)).sum().backward()
    return 1.0


def pipelining(rank: int, world_size: int) -> float:
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    stage = PipelineStage(
        torch.nn.Linear(4, 4), rank, world_size, torch.device("cpu"), input_args=(torch.ones(1, 4),)
    )
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=lambda out, target: out.sum())
    if rank == 0:
        schedule.step(torch.ones(2, 4))
    else:
        schedule.step(target=torch.zeros(2, 4))
    return 1.0


WAYS = {
    "python_calls": (python_calls, {"send", "recv", "broadcast", "all_gather", "barrier"}),
    "asynchronous": (asynchronous, {"all_reduce"}),
    "inference": (inference, {"all_reduce"}),
    "functional": (functional, {"all_reduce", "all_gather"}),
    "dtensor": (dtensor, {"all_gather"}),
    "ddp": (ddp, {"all_reduce", "broadcast"}),
    "fsdp2": (fsdp2, {"all_gather", "reduce_scatter"}),
    "pipelining": (pipelining, {"send", "recv"}),
}
"""name -> (program, the ops that its trace must contain)"""
