"""Features of machines with a GPU, and, on any machine, a rank server that does not use GPUs."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from helpers.ranks.failures import Deadlock, RankFailed
from helpers.ranks.launch_options import GPU_BACKEND
from helpers.ranks.launcher import launch

GPUS = torch.cuda.device_count()
needs_gpu = pytest.mark.skipif(not GPUS, reason="needs a GPU")
# Starting CUDA takes a rank some seconds.
TIMEOUT_S = 120


def test_server_never_initializes_cuda() -> None:
    """A rank is forked from the server, so it would inherit an initialized CUDA."""
    assert launch(lambda rank, n: torch.cuda.is_initialized(), 2, backend="gloo").values == [
        False,
        False,
    ]


@pytest.mark.gpu
@needs_gpu
def test_auto_selects_nccl_with_enough_gpus() -> None:
    def reduce(rank: int, world_size: int) -> tuple[float, float, str]:
        on_gpu = torch.ones(4, device=f"cuda:{rank}")
        on_cpu = torch.ones(4)
        dist.all_reduce(on_gpu)
        dist.all_reduce(on_cpu)
        return float(on_gpu[0]), float(on_cpu[0]), torch.cuda.get_device_name(rank)

    run = launch(reduce, GPUS, timeout=TIMEOUT_S)
    assert run.backend == GPU_BACKEND
    assert all(value[:2] == (GPUS, GPUS) for value in run.values)
    assert [event.op for event in run.trace.of(0)] == ["all_reduce", "all_reduce"]


@pytest.mark.gpu
@needs_gpu
def test_auto_selects_gloo_with_few_gpus() -> None:
    assert launch(lambda rank, n: dist.get_backend(), GPUS + 1).values == ["gloo"] * (GPUS + 1)


@pytest.mark.gpu
@needs_gpu
def test_records_nccl_calls_including_waits() -> None:
    def communicate(rank: int, world_size: int) -> torch.Tensor:
        x = torch.ones(8, device="cuda")
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        work = dist.all_reduce(x, async_op=True)
        assert work is not None
        work.wait()
        all_ranks = dist.group.WORLD
        assert all_ranks is not None
        return functional.all_reduce(x, "sum", all_ranks) + 1

    run = launch(communicate, GPUS, timeout=TIMEOUT_S)
    for rank in range(GPUS):
        value, events = run.values[rank], run.trace.of(rank)
        assert value.device.type == "cpu", "a value comes back to a process that may have no GPU"
        assert value.tolist() == [GPUS**3 + 1] * 8
        assert [e.op for e in events] == ["all_reduce", "broadcast", "all_reduce", "all_reduce"]
        assert all(event.end_ns is not None for event in events)


@pytest.mark.gpu
@needs_gpu
def test_models_train_on_gpus() -> None:
    def train(rank: int, world_size: int) -> tuple[float, str]:
        replica = torch.nn.Linear(8, 8).cuda()
        ddp = DistributedDataParallel(replica, device_ids=[rank])
        ddp(torch.ones(2, 8).cuda()).sum().backward()
        shards = torch.nn.Linear(8, 8).cuda()
        fully_shard(shards)
        shards(torch.ones(2, 8).cuda()).sum().backward()
        assert replica.bias.grad is not None
        return replica.bias.grad.sum().item(), str(shards.weight.device)

    run = launch(train, GPUS, timeout=TIMEOUT_S)
    assert run.values == [(16.0, f"cuda:{rank}") for rank in range(GPUS)]
    assert any(event.op == "all_reduce" for event in run.trace.of(0))


@pytest.mark.gpu
@needs_gpu
def test_gloo_shares_gpus_and_diagnoses_deadlocks() -> None:
    def reduce(rank: int, world_size: int) -> float:
        x = torch.ones(1, device="cuda:0")
        dist.all_reduce(x)
        return x.item()

    run = launch(reduce, GPUS + 1, timeout=TIMEOUT_S)
    assert run.values == [float(GPUS + 1)] * (GPUS + 1)
    assert [event.op for event in run.trace.of(0)] == ["all_reduce"]

    def reduce_without_the_last(rank: int, world_size: int) -> None:
        x = torch.ones(1, device="cuda:0")
        if rank < world_size - 1:
            dist.all_reduce(x)

    with pytest.raises(Deadlock, match=f"all_reduce.* waits for rank {GPUS}"):
        launch(reduce_without_the_last, GPUS + 1, timeout=TIMEOUT_S)


@pytest.mark.gpu
@needs_gpu
def test_gpu_errors_spare_later_launches() -> None:
    def exhaust(rank: int, world_size: int) -> None:
        torch.empty(1 << 45, device="cuda")

    def index_too_far(rank: int, world_size: int) -> None:
        torch.zeros(2, device="cuda")[torch.tensor([5], device="cuda")]
        torch.cuda.synchronize()

    with pytest.raises(RankFailed, match="OutOfMemoryError"):
        launch(exhaust, 1, timeout=TIMEOUT_S)
    with pytest.raises(RankFailed, match="device-side assert"):
        launch(index_too_far, 1, timeout=TIMEOUT_S)
    assert launch(
        lambda rank, n: torch.ones(1, device="cuda").item(), 1, timeout=TIMEOUT_S
    ).values == [1.0]
