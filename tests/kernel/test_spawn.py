"""The fallback for systems with an unsafe fork: each rank is a new interpreter. Tested on Linux."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernel.session import GONE_S, STOP_S, Kernel, MakeKernel, wait_until

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="module")
def spawning() -> Iterator[Kernel]:
    kernel = Kernel(REAL_RANKS_START="spawn")
    try:
        kernel.value("from helpers import *\nimport torch, torch.distributed as dist, os, time")
        kernel.value("launch(lambda rank, n: rank, 1)")
        yield kernel
    finally:
        kernel.close()


@pytest.mark.extended
def test_launches_in_spawned_kernel(spawning: Kernel) -> None:
    source = "x = torch.ones(2)\ndef f(rank, n):\n    y = x * (rank + 1)\n    dist.all_reduce(y)\n"
    source += "    print('from', rank)\n    return y, rank\nrun = launch(f, 2)\nrun"
    shown = spawning.value(source)
    assert shown.count("(tensor([3., 3.]), ") == 2 and "rank 1 | from 1" in shown
    calls = "[(event.rank, event.call) for event in run.trace.events]"
    assert "(1, 'all_reduce')" in spawning.value(calls)


@pytest.mark.extended
def test_reports_failures_in_spawned_kernel(spawning: Kernel) -> None:
    cell = spawning.run("def f(rank, n):\n    dist.barrier()\n    {}[rank]\nlaunch(f, 2)")
    assert cell.error == "RankFailed" and "KeyError" in cell.message and "line 3" in cell.message
    deadlock = "def f(rank, n):\n    dist.recv(torch.zeros(1), 1 - rank)\nlaunch(f, 2)"
    cell = spawning.run(deadlock)
    assert cell.error == "Deadlock" and "waits for rank 1" in cell.message
    cell = spawning.run(
        "def f(rank, n):\n    os._exit(3) if rank else dist.barrier()\nlaunch(f, 2)"
    )
    assert cell.error == "RankDied" and "exited with code 3" in cell.message


@pytest.mark.extended
def test_spawned_kernel_keeps_live_ranks(spawning: Kernel) -> None:
    spawning.value("%%ranks 2\nmine = rank * 2")
    assert spawning.value("%%ranks 2\nmine") == "rank 0 → 0\nrank 1 → 2\n"
    spawning.value("from helpers.ranks.magics import end_live_world; end_live_world('a test')")


@pytest.mark.extended
def test_stop_ends_launch_in_spawned_kernel(spawning: Kernel) -> None:
    source = "def f(rank, n):\n    print('up', flush=True)\n    time.sleep(600)\n"
    request = spawning.begin(source + "launch(f, 2, timeout=900)")
    spawning.wait_for_ranks(2)
    spawning.interrupt()
    wait_until(lambda: not spawning.ranks(), STOP_S, spawning.ranks)
    assert spawning.wait(request).error == "Stopped"


@pytest.mark.extended
def test_killed_spawned_kernel_leaves_no_processes(new_kernel: MakeKernel) -> None:
    kernel = new_kernel(REAL_RANKS_START="spawn")
    kernel.value("%%ranks 2\nkept = 1")
    assert len(kernel.processes()) == 4
    kernel.kill()
    wait_until(lambda: not kernel.processes(), GONE_S, kernel.processes)
