"""Lines from GPU tutorials cause an error with advice on the corresponding line for a CPU."""

from __future__ import annotations

import linecache
import os
from typing import Any

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.launcher import LaunchError, launch

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")

NO_GPU = 'use "cpu" as the device'
ON_GPUS: dict[str, tuple[str, str]] = {
    "set_device": ("torch.cuda.set_device(rank)", NO_GPU),
    "a rank as the device": ("torch.ones(1).to(rank)", NO_GPU),
    "a module to a rank": ("torch.nn.Linear(1, 1).to(rank)", NO_GPU),
    "a module to a GPU": ("torch.nn.Linear(1, 1).cuda(rank)", NO_GPU),
    "cuda()": ("torch.ones(1).cuda()", NO_GPU),
    "made there": ("torch.ones(1, device=f'cuda:{rank}')", NO_GPU),
    "a default device": ("with torch.device('cuda', rank): torch.ones(1)", NO_GPU),
    "the current device": ("torch.cuda.current_device()", NO_GPU),
    "synchronize": ("torch.cuda.synchronize()", NO_GPU),
    "an event": ("torch.cuda.Event(enable_timing=True)", NO_GPU),
    "a stream": ("torch.cuda.Stream()", NO_GPU),
    "a block": ("with torch.cuda.device(rank): pass", NO_GPU),
    "memory": ("torch.cuda.reset_peak_memory_stats()", NO_GPU),
    "a summary": ("torch.cuda.memory_summary()", NO_GPU),
    "a generator": ("torch.Generator(device='cuda')", NO_GPU),
    "an accelerator": ("torch.accelerator.set_device_index(rank)", NO_GPU),
    "a mesh": ("dist.device_mesh.init_device_mesh('cuda', (n,))", NO_GPU),
    "a count": ("rank % torch.cuda.device_count()", NO_GPU),
    "pinned memory": ("torch.ones(1).pin_memory()", "Leave it out"),
    "device_ids": (
        "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1), device_ids=[rank])",
        "Write DDP(model).",
    ),
    "a group for NCCL": ("dist.new_group(backend='nccl')", '"gloo"'),
    "a message to oneself": ("dist.send(torch.ones(1), rank)", "Copy the tensor"),
    "one from oneself": ("dist.recv(torch.ones(1), rank)", "Copy the tensor"),
}
AS_SCRIPTS: dict[str, tuple[str, str]] = {
    "nccl": ("dist.init_process_group('nccl')", '"gloo"'),
    "both": ("dist.init_process_group('cpu:gloo,cuda:nccl')", '"gloo"'),
    "mpi": ("dist.init_process_group('mpi')", '"gloo"'),
    "a device": ("dist.init_process_group('nccl', device_id=torch.device('cuda', rank))", '"gloo"'),
    "an interface": (
        "os.environ['GLOO_SOCKET_IFNAME'] = 'eth77'; dist.init_process_group('gloo')",
        "Leave that line out",
    ),
}


def failure_of(line: str, **options: Any) -> str:
    namespace: dict[str, Any] = {"torch": torch, "dist": dist, "os": os, "__name__": "__main__"}
    source = f"def f(rank, n):\n    {line}"
    # register the source like a cell's lines, because some advice reads them
    linecache.cache["<program>"] = len(source), None, source.splitlines(keepends=True), "<program>"
    exec(compile(source, "<program>", "exec"), namespace)
    run = launch(namespace["f"], 2, on_failure="return", timeout=60, **options)
    assert run.failure is not None
    return str(run.failure)


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", ON_GPUS)
def test_advises_on_lines_for_gpus(what: str) -> None:
    line, says = ON_GPUS[what]
    if what == "an event" and torch.version.cuda:
        pytest.skip("a build for CUDA makes events on machines without a GPU")
    assert says in failure_of(line)


@pytest.mark.parametrize("what", AS_SCRIPTS)
def test_advises_on_gpu_specific_group_setup(what: str) -> None:
    line, says = AS_SCRIPTS[what]
    assert says in failure_of(line, init=False)


def test_reports_self_message_as_cause() -> None:
    line = "if rank == 1: dist.recv(torch.ones(1), 1)\n    dist.barrier()"
    assert failure_of(line).startswith("rank 1 raised RuntimeError")


def test_gives_no_advice_for_gpu_mentions() -> None:
    assert NO_GPU not in failure_of(
        "device_count = 1 // 0 if torch.ones(1).is_cuda else {}['cuda']"
    )


def test_advises_on_world_size_without_gpus() -> None:
    with pytest.raises(LaunchError, match=r"torch.cuda.device_count\(\), it is 0 without GPUs"):
        launch(lambda rank, n: rank, torch.cuda.device_count())
