"""Long series of launches, in which leaks of single launches would add up."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from helpers.ranks import launcher
from helpers.ranks.failures import RankDied, RankFailed
from helpers.ranks.launcher import launch
from tests.kernel.session import GONE_S, wait_until

WORLD_SIZE = 2


@dataclass(frozen=True)
class Resources:
    """Resources held by the launching process, its rank server and their temp directory."""

    processes: int
    descriptors: int
    server_descriptors: int
    threads: int
    server_threads: int
    listening_ports: int
    files: int
    shared_memory: int


def count_resources() -> Resources:
    """Count the resources, after the server has ended the last launch in the background."""
    own, server = psutil.Process(), psutil.Process(launcher.connect().pid)
    folder = Path(launcher.connect().site.scratch)
    wait_until(lambda: not server.children() and not list(folder.glob("world-*")), GONE_S)
    children = own.children(recursive=True)
    listening = [
        connection
        for process in (own, *children)
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    ours = list(Path(tempfile.gettempdir()).glob(f"real-ranks-{os.getpid()}-*"))
    return Resources(
        len(children),
        own.num_fds(),
        server.num_fds(),
        own.num_threads(),
        server.num_threads(),
        len(listening),
        len(ours) + sum(len(names) + len(files) for _, names, files in os.walk(folder)),
        len(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else 0,
    )


def one_launch(number: int) -> None:
    """Launch like a learner: most launches succeed, and now and then a rank raises or dies."""

    def work(rank: int, world_size: int) -> float:
        x = torch.ones(100) * rank
        dist.all_reduce(x)
        if number % 10 == 7 and rank == 1:
            raise ValueError("now and then")
        if number % 25 == 3 and rank == 0:
            os._exit(3)
        return x.sum().item()

    run = launch(work, WORLD_SIZE, on_failure="return")
    if number % 25 == 3:
        assert isinstance(run.failure, RankDied), run.failure
    elif number % 10 == 7:
        assert isinstance(run.failure, RankFailed), run.failure
    else:
        assert run.values == [100.0] * WORLD_SIZE, run


def row_of_launches(count: int) -> None:
    for number in range(5):
        one_launch(number)
    before, memory, began = count_resources(), _memory(), time.monotonic()
    for number in range(count):
        one_launch(number)
    seconds = time.monotonic() - began
    after = count_resources()
    states = Counter(
        connection.status
        for connection in psutil.net_connections("tcp")
        if connection.laddr and connection.laddr[0].startswith("127.")
    )
    print(
        f"\n{count} launches of {WORLD_SIZE} ranks in {seconds:.1f} s: {1000 * seconds / count:.0f} ms each"
        f"\n  before: {before}\n  after:  {after}"
        f"\n  memory of launcher, server [MB]: {memory} -> {_memory()}"
        f"\n  TCP on this machine's loopback: {dict(states)}"
    )
    for name, was in vars(before).items():
        if name != "shared_memory":  # also contains shared memory of this machine's other programs
            assert getattr(after, name) <= was, name


def _memory() -> tuple[int, int]:
    pids = (os.getpid(), launcher.connect().pid)
    first, second = (psutil.Process(pid).memory_info().rss // 1_000_000 for pid in pids)
    return first, second


@pytest.mark.extended
@pytest.mark.usefixtures("preloaded")
def test_hundred_launches_leave_no_resources() -> None:
    row_of_launches(100)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("preloaded")
def test_thousand_launches_leave_no_resources() -> None:
    row_of_launches(1000)
