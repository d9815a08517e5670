"""Measure the engine: its start, the cost of recording, and its memory."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import psutil
import torch
import torch.distributed as dist

from helpers.ranks.launcher import connect, launch
from tests.benchmarks.timing import Figure, interleaved, median, spread

_FIRST = (
    "import torch, torch.distributed as dist\nfrom helpers import launch\n"
    "def f(rank, n):\n    x = torch.ones(4)\n    dist.all_reduce(x)\n    return float(x[0])\n"
    "assert launch(f, 2).values == [2.0, 2.0]\n"
)


def first_launch() -> list[Figure]:
    """Time a new interpreter up to its first result, and one that only imports torch."""
    times = interleaved(
        {
            "first": lambda: subprocess.run([sys.executable, "-c", _FIRST], check=True),
            "torch": lambda: subprocess.run([sys.executable, "-c", "import torch"], check=True),
        },
        5,
    )
    ratio = f"{median(times['first']) / median(times['torch']):.2f}x"
    return [
        Figure(
            "new interpreter: import, server, first result",
            spread(times["first"]),
            f"import torch {spread(times['torch'])}",
            ratio,
            "≤ 2x",
        )
    ]


def _ddp_steps(rank: int, world_size: int, steps: int) -> list[float]:
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
    )
    batch, times = torch.ones(256, 256), []
    for _ in range(steps):
        start = perf_counter()
        model(batch).sum().backward()
        times.append(perf_counter() - start)
    return times[steps // 4 :]


def recording() -> list[Figure]:
    """Measure the time that recording adds to a DDP step, and to one small all_reduce on one rank."""
    on, off = _with_and_without_recording(_ddp_steps, 2, (40,), 8)
    steps, plain = [t for some in on for t in some], [t for some in off for t in some]
    figures = [
        Figure(
            "DDP step, 2 ranks, recorded",
            spread(steps),
            f"not recorded {spread(plain)}",
            f"{median(steps) / median(plain) - 1:+.1%}",
            "≤ 5 %",
        )
    ]
    # A single rank waits for no peer, so its time is that of the call. With more ranks than idle cores, the
    # scheduler's part is larger than that of the recording.
    recorded, plain = _with_and_without_recording(_small_calls, 1, (400,), 9)
    more = 1e6 * (median(recorded) - median(plain))
    figures.append(
        Figure(
            "small all_reduce, 1 rank, recorded",
            f"{1e6 * median(recorded):.0f} µs",
            f"not recorded {1e6 * median(plain):.0f} µs",
            f"{more:+.0f} µs a call",
            "≤ 60 µs",
        )
    )
    return figures


def _with_and_without_recording(
    work: Callable[..., Any], world_size: int, args: tuple[Any, ...], repeats: int
) -> tuple[list[Any], list[Any]]:
    """Run a program with and without recording, in turn, on the same machine; return rank 0's values."""
    both: tuple[list[Any], list[Any]] = [], []
    for turn in range(2 * repeats):
        recorded = turn % 4 in {0, 3}  # on, off, off, on: neither of the two always runs first
        run = launch(work, world_size, args=args, timeout=120, trace=recorded)
        both[not recorded].append(run.values[0])
    return both


def _small_calls(rank: int, world_size: int, count: int) -> float:
    x = torch.ones(4)
    for _ in range(count // 10):
        dist.all_reduce(x)
    start = perf_counter()
    for _ in range(count):
        dist.all_reduce(x)
    return (perf_counter() - start) / count


def memory() -> list[Figure]:
    """Measure the PSS of a forked rank, and of a server that has preloaded everything."""
    connect().preload()

    def pss(rank: int, world_size: int) -> float:
        dist.barrier()
        return psutil.Process().memory_full_info().pss / 1e6

    ranks = launch(pss, 4).values
    server = psutil.Process(connect().pid).memory_full_info().pss / 1e6
    return [
        Figure("memory of a rank (PSS), 4 ranks", f"{statistics.median(ranks):.0f} MB"),
        Figure("memory of a rank server that has preloaded all", f"{server:.0f} MB"),
    ]
