"""Faults without an error are reported in the run's notes, and right programs get no note."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.launcher import launch
from tests.trace.programs import WAYS

pytestmark = pytest.mark.usefixtures("preloaded")
Program = Callable[[int, int], object]


def dtypes_of_a_reduction(rank: int, n: int) -> None:
    dist.all_reduce(torch.ones(2, dtype=torch.float32 if rank else torch.int32))


def dtypes_of_a_message(rank: int, n: int) -> None:
    if rank == 0:
        dist.send(torch.ones(2), 1)
    else:
        dist.recv(torch.ones(2, dtype=torch.int32), 0)


def dtypes_of_a_gather(rank: int, n: int) -> None:
    dtype = torch.float64 if rank else torch.int64
    dist.all_gather([torch.ones(1, dtype=dtype) for _ in range(n)], torch.ones(1, dtype=dtype))


def reduction_without_wait(rank: int, n: int) -> None:
    dist.all_reduce(torch.ones(1), async_op=True)
    time.sleep(0.2)


def barrier_without_wait_on_one_rank(rank: int, n: int) -> None:
    work = dist.barrier(async_op=True)
    time.sleep(0.2)
    if rank == 0:
        assert work is not None
        work.wait()


FAULTS: dict[Program, str] = {
    dtypes_of_a_reduction: "rank 0 passes int32 to all_reduce",
    dtypes_of_a_message: "rank 0 passes float32 to send",
    dtypes_of_a_gather: "rank 0 passes int64 to all_gather",
    reduction_without_wait: "ranks 0, 1 never waited for all_reduce",
    barrier_without_wait_on_one_rank: "rank 1 never waited for barrier",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", FAULTS, ids=lambda program: program.__name__)
def test_notes_silent_faults(program: Program) -> None:
    run = launch(program, 2, timeout=60)
    assert len(run.notes) == 1 and FAULTS[program] in run.notes[0], run.notes
    assert "test_silent.py, line" in run.notes[0]


def waits_in_each_way(rank: int, n: int) -> None:
    x = torch.ones(1)
    work = dist.all_reduce(x, async_op=True)
    assert work is not None
    while not work.is_completed():
        time.sleep(0.001)
    for _ in range(2):
        future = dist.all_reduce(x, async_op=True).get_future()  # type: ignore[union-attr]
        future.then(lambda done: done.value()).wait()
    torch.futures.wait_all([dist.barrier(async_op=True).get_future()])  # type: ignore[union-attr]
    with dist._coalescing_manager(async_ops=True) as manager:  # type: ignore[attr-defined]
        dist.all_reduce(x)
    manager.wait()


def reads_bytes_as_numbers(rank: int, n: int) -> None:
    if rank == 0:
        dist.send(torch.tensor([True, False]), 1)
        dist.send(torch.ones(2), 1)
    else:
        dist.recv(torch.ones(2, dtype=torch.uint8), 0)
        dist.recv(torch.ones(1, dtype=torch.complex64), 0)


def hook_of_gradients(rank: int, n: int) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))

    def start(bucket: Any) -> Any:
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future()  # type: ignore[union-attr]

    model.register_comm_hook(
        None, lambda state, bucket: start(bucket).then(lambda done: done.value()[0] / n)
    )
    model(torch.ones(1, 2)).sum().backward()


RIGHT = {program.__name__: program for program, _ in WAYS.values()} | {
    program.__name__: program
    for program in (waits_in_each_way, reads_bytes_as_numbers, hook_of_gradients)
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", RIGHT)
def test_notes_nothing_in_right_programs(name: str) -> None:
    assert launch(RIGHT[name], 2, timeout=60).notes == ()
