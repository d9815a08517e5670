"""What only a machine with a GPU can show; and that the rank server leaves GPUs alone anywhere."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.launcher import launch
from helpers.ranks.options import WITH_GPUS

GPUS = torch.cuda.device_count()
needs_gpu = pytest.mark.skipif(not GPUS, reason="needs a GPU")


def test_the_server_never_initialises_cuda() -> None:
    """A rank is forked from the server: what the server had initialized, the rank would find so."""
    assert launch(lambda rank, n: torch.cuda.is_initialized(), 2, backend="gloo").values == [
        False,
        False,
    ]


@pytest.mark.gpu
@needs_gpu
def test_auto_takes_nccl_where_each_rank_has_a_gpu() -> None:
    def reduce(rank: int, world_size: int) -> tuple[float, float, str]:
        on_gpu = torch.ones(4, device=f"cuda:{rank}")
        on_cpu = torch.ones(4)
        dist.all_reduce(on_gpu)
        dist.all_reduce(on_cpu)
        return float(on_gpu[0]), float(on_cpu[0]), torch.cuda.get_device_name(rank)

    run = launch(reduce, GPUS, timeout=120)
    assert run.backend == WITH_GPUS
    assert all(value[:2] == (GPUS, GPUS) for value in run.values)
    assert [event.op for event in run.trace.of(0)] == ["all_reduce", "all_reduce"]


@pytest.mark.gpu
@needs_gpu
def test_auto_takes_gloo_where_gpus_are_too_few() -> None:
    assert launch(lambda rank, n: dist.get_backend(), GPUS + 1).values == ["gloo"] * (GPUS + 1)
