"""Measure the time from the call to the result for `launch`, a bare fork, mp.spawn, torchrun, and others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import torch.multiprocessing as mp

from helpers.jobs.ports import free_port
from helpers.ranks.launcher import connect, launch
from tests.benchmarks.programs import (
    bare_fork,
    fresh_store,
    join_and_reduce,
    join_from_environment_and_reduce,
    one_all_reduce,
    reduce_in_joined_group,
)
from tests.benchmarks.timing import Figure, interleaved, median, spread

WORLDS = (1, 2, 4, 8, 16, 32, 64, 128)
_TARGETS = {64: "≤ 0.6 s", 128: "≤ 1.2 s"}


def by_world_size() -> tuple[list[Figure], dict[str, list[tuple[int, float]]]]:
    """Measure each world size, and return the table's rows and the plot's points."""
    connect().preload()
    figures: list[Figure] = []
    points: dict[str, list[tuple[int, float]]] = {"launch": [], "bare fork + gloo": []}
    for n in WORLDS:
        calls: dict[str, Callable[[], object]] = {
            "launch": lambda n=n: launch(one_all_reduce, n, timeout=120),  # type: ignore[misc]
            "bare fork + gloo": lambda n=n: bare_fork(n),  # type: ignore[misc]
        }
        times = interleaved(calls, 15 if n <= 16 else 5)
        ours, bare = times["launch"], times["bare fork + gloo"]
        for name, seconds in times.items():
            points[name].append((n, median(seconds)))
        ratio = f"{median(ours) / median(bare):.2f}x"
        target = _TARGETS.get(n, "≤ 1.5x" if n == 4 else "")
        what = f"launch, {n} rank{'s' * (n > 1)}"
        figures.append(
            Figure(what, spread(ours), f"bare fork + gloo init {spread(bare)}", ratio, target)
        )
    return figures, points


def compare_with_peers(world_size: int = 4) -> list[Figure]:
    """Measure today's common ways to start ranks, at one world size."""
    peers: dict[str, tuple[Callable[[], object], int, str]] = {
        "mp.spawn": (lambda: _spawn(world_size), 3, "≥ 100x"),
        "torchrun": (lambda: _torchrun(world_size), 3, ""),
        "notebook_launcher's way": (lambda: _elastic_fork(world_size), 7, "≥ 3x"),
        "accelerate debug_launcher": (lambda: _debug_launcher(world_size), 7, ""),
    }
    figures = []
    for name, (call, repeats, target) in peers.items():
        both: dict[str, Callable[[], object]] = {
            "launch": lambda: launch(one_all_reduce, world_size),
            name: call,
        }
        times = interleaved(both, repeats)
        ratio = f"{median(times[name]) / median(times['launch']):.1f}x faster"
        what = f"launch, {world_size} ranks"
        figures.append(
            Figure(what, spread(times["launch"]), f"{name} {spread(times[name])}", ratio, target)
        )
    return figures


def _spawn(world_size: int) -> None:
    mp.spawn(join_and_reduce, (world_size, fresh_store()), nprocs=world_size)


def _torchrun(world_size: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    script = ["-m", "tests.benchmarks.programs"]
    done = subprocess.run(
        [*command, f"--nproc-per-node={world_size}", *script],
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()


def _elastic_fork(world_size: int) -> None:
    """Launch like accelerate's notebook_launcher on a machine with GPUs: an elastic launch by fork.

    Without GPUs it starts no processes at all, so its launch is called here with the same options.
    """
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=world_size,
        run_id="none",
        rdzv_backend="static",
        rdzv_endpoint=f"127.0.0.1:{free_port()}",
        rdzv_configs={"rank": 0},
        max_restarts=0,
        monitor_interval=0.1,
        start_method="fork",
    )
    elastic_launch(config, join_from_environment_and_reduce)()


def _debug_launcher(world_size: int) -> None:
    from accelerate import debug_launcher

    debug_launcher(reduce_in_joined_group, num_processes=world_size)
