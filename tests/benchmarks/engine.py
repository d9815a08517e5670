"""Start of the engine, price of recording, time to a diagnosis, memory."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from time import perf_counter

import psutil
import torch
import torch.distributed as dist

from helpers.ranks.failures import Deadlock
from helpers.ranks.launcher import connect, launch
from tests.benchmarks.timing import Figure, interleaved, median, spread

_FIRST = (
    "import torch, torch.distributed as dist\nfrom helpers import launch\n"
    "def f(rank, n):\n    x = torch.ones(4)\n    dist.all_reduce(x)\n    return float(x[0])\n"
    "assert launch(f, 2).values == [2.0, 2.0]\n"
)


def first_launch() -> Figure:
    """From a new interpreter to the first result, beside an interpreter that imports torch."""
    times = interleaved(
        {
            "first": lambda: subprocess.run([sys.executable, "-c", _FIRST], check=True),
            "torch": lambda: subprocess.run([sys.executable, "-c", "import torch"], check=True),
        },
        5,
    )
    ratio = f"{median(times['first']) / median(times['torch']):.2f}x"
    return Figure(
        "new interpreter: import, server, first result",
        spread(times["first"]),
        f"import torch {spread(times['torch'])}",
        ratio,
        "≤ 2x",
    )


def _ddp_steps(rank: int, world_size: int, steps: int) -> list[float]:
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
    )
    batch, times = torch.ones(512, 256), []
    for _ in range(steps):
        start = perf_counter()
        model(batch).sum().backward()
        times.append(perf_counter() - start)
    return times[steps // 4 :]


def recording() -> list[Figure]:
    """What recording adds to a DDP step, and to one small all_reduce."""
    on, off = [], []
    for _ in range(6):  # in turn, so that both see the same machine
        on += launch(_ddp_steps, 2, args=(40,), timeout=120).values[0]
        off += launch(_ddp_steps, 2, args=(40,), timeout=120, trace=False).values[0]
    added = median(on) / median(off) - 1
    calls_on, calls_off = [], []
    for _ in range(4):
        calls_on.append(launch(_small_calls, 2).values[0])
        calls_off.append(launch(_small_calls, 2, trace=False).values[0])
    each = 1e6 * (statistics.median(calls_on) - statistics.median(calls_off))
    return [
        Figure(
            "DDP step, 2 ranks, recorded",
            spread(on),
            f"not recorded {spread(off)}",
            f"{added:+.1%}",
            "≤ 5 %",
        ),
        Figure("one small all_reduce, recorded", f"{each:.0f} µs more a call"),
    ]


def _small_calls(rank: int, world_size: int) -> float:
    x, count = torch.ones(4), 500
    start = perf_counter()
    for _ in range(count):
        dist.all_reduce(x)
    return (perf_counter() - start) / count


def diagnosis() -> Figure:
    """From the moment in which the last rank blocks to the Deadlock that `launch` gives."""

    def circle(rank: int, world_size: int) -> None:
        dist.recv(torch.ones(1), (rank + 1) % world_size)

    waits = []
    for _ in range(7):
        run = launch(circle, 4, on_failure="return")
        ended = time.monotonic_ns()
        assert isinstance(run.failure, Deadlock)
        waits.append((ended - max(event.start_ns for event in run.trace)) / 1e9)
    return Figure("a deadlock is named after", spread(waits), "gloo alone: 30 min", "", "≤ 1 s")


def memory() -> list[Figure]:
    """PSS of a forked rank, of the server, and of an idle learner: kernel and server."""
    connect().preload()

    def pss(rank: int, world_size: int) -> float:
        dist.barrier()
        return psutil.Process().memory_full_info().pss / 1e6

    ranks = launch(pss, 4).values
    server = psutil.Process(connect().pid).memory_full_info().pss / 1e6
    kernel = _idle_learner()
    return [
        Figure("memory of a rank (PSS), 4 ranks", f"{statistics.median(ranks):.0f} MB", "", "", ""),
        Figure("memory of the rank server", f"{server:.0f} MB", "", "", ""),
        Figure(
            "memory of an idle learner: kernel + server",
            f"{kernel:.0f} MB",
            f"30 of them: {30 * kernel / 1000:.1f} GB",
            "",
            "30 in 24 GB",
        ),
    ]


def _idle_learner() -> float:
    """Start three kernels that have imported the course, let them idle, and weigh one with its server.

    PSS shares libraries among the three, as among a class on one machine.
    """
    from jupyter_client.manager import start_new_kernel

    kernels = [start_new_kernel(kernel_name="python3") for _ in range(3)]
    try:
        for _, client in kernels:
            client.execute_interactive(
                "import torch, torch.distributed as dist\nfrom helpers import launch, timeline, check\n"
                "launch(lambda r, n: r, 2)",
                timeout=120,
                output_hook=lambda message: None,
            )
        time.sleep(8)  # the servers preload while idle
        total = 0
        for manager, _ in kernels:
            kernel = psutil.Process(manager.provisioner.pid)
            family = [kernel, *kernel.children(recursive=True)]
            total += sum(process.memory_full_info().pss for process in family)
        return total / len(kernels) / 1e6
    finally:
        for manager, client in kernels:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
