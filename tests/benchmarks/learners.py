"""Measure real Jupyter kernels: the first DDP, the memory, and thirty kernels at once."""

from __future__ import annotations

import ast
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from tests.benchmarks.timing import Figure, median, spread

IMPORTS = "import torch, torch.distributed as dist\nfrom helpers import launch, timeline, check\n"
LEARNERS = 30
_DEADLINE_S = 300.0

_FIRST = """
from time import perf_counter
def made(rank, n):
    times = []
    for _ in range(2):
        layer = torch.nn.Linear(8, 8)
        start = perf_counter()
        {what}
        times.append(perf_counter() - start)
    return times
"""
_MADE = {
    "DDP": "torch.nn.parallel.DistributedDataParallel(layer)",
    "SGD": "torch.optim.SGD(layer.parameters(), 0.1)",
    "AdamW": "torch.optim.AdamW(layer.parameters())",
}
_DDP_CELL = """
def train(rank, n):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
    return rank
"""
_RETIRE = """
import time
from helpers.ranks import launcher
from helpers.ranks.placement import LocalSite
launcher.disconnect()
LocalSite.idle_s = 1.0  # not the minutes that a learner's server stays
launcher.connect().wait_until_ready()
end = time.monotonic() + 60
while launcher.current_connection().alive() and time.monotonic() < end:
    time.sleep(0.1)
"""
_RUN_IT = "launch(train, 2, timeout=120).values"


@contextmanager
def kernels(count: int) -> Iterator[list[tuple[KernelManager, BlockingKernelClient]]]:
    """Start kernels one after the other, and shut them down at the end."""
    made: list[tuple[KernelManager, BlockingKernelClient]] = []
    try:
        for _ in range(count):
            made.append(start_new_kernel(120, "python3", stderr=subprocess.DEVNULL))
        yield made
    finally:
        for manager, client in made:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def value(client: BlockingKernelClient, source: str) -> Any:
    """Run a cell and return its value, which must be plain data."""
    shown: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "execute_result":
            shown.append(message["content"]["data"]["text/plain"])

    reply = client.execute_interactive(source, timeout=_DEADLINE_S, output_hook=hear)
    assert reply["content"]["status"] == "ok", reply["content"]
    return ast.literal_eval(shown[-1]) if shown else None


def first_made() -> list[Figure]:
    """Make a DDP or an optimizer, and a second one, in a rank of a fresh kernel's first launch."""
    figures = []
    for name, what in _MADE.items():
        firsts, seconds, cells = [], [], []
        for _ in range(3):
            with kernels(1) as ((_, client),):
                value(client, IMPORTS)
                value(client, _FIRST.format(what=what))
                start = time.perf_counter()
                first, second = value(client, "launch(made, 2).values[0]")
                cells.append(time.perf_counter() - start)
            firsts.append(first)
            seconds.append(second)
        figures.append(
            Figure(
                f"first {name} in a rank, first launch of a kernel",
                spread(firsts),
                f"a second one {spread(seconds)}; that cell {spread(cells)}",
                f"{1e3 * (median(firsts) - median(seconds)):+.0f} ms",
                "≤ +50 ms",
            )
        )
    return figures


def idle_memory() -> list[Figure]:
    """Measure the memory of a kernel and its rank server.

    Three kernels run, so they share libraries like the kernels of a class.
    """
    steps = {
        "after the first cell": IMPORTS + "from helpers.ranks.launcher import connect\n"
        "connect().wait_until_ready()",
        "after a launch": "launch(lambda rank, n: rank, 2).values",
        "after a DDP cell": f"{_DDP_CELL}\n{_RUN_IT}",
        "when the server has retired": _RETIRE,
    }
    figures = []
    with kernels(3) as made:
        for step, source in steps.items():
            for _, client in made:
                value(client, source)
            time.sleep(1.0)  # wait until dismissed ranks have exited
            figures.append(_weigh(step, [m.provisioner.pid for m, _ in made]))  # type: ignore[union-attr]
    return figures


def _weigh(step: str, pids: list[int]) -> Figure:
    mine = [psutil.Process(pid) for pid in pids]
    families = [[one, *one.children(recursive=True)] for one in mine]
    infos = [
        [p.memory_full_info() for p in some if p.status() != psutil.STATUS_ZOMBIE]
        for some in families
    ]
    each = [sum(info.pss for info in some) / 1e6 for some in infos]
    of_kernel = median([some[0].pss / 1e6 for some in infos])
    own_kernel = median([some[0].uss / 1e6 for some in infos])
    own_server = median([sum(info.uss for info in some[1:]) / 1e6 for some in infos])
    return Figure(
        f"idle learner, {step}: kernel + server",
        f"{median(each):.0f} MB",
        f"kernel {of_kernel:.0f} MB; private: kernel {own_kernel:.0f} MB, server {own_server:.0f} MB",
        "",
        "≤ 300 MB",
    )


def thirty_at_once() -> list[Figure]:
    """Run a DDP cell in thirty kernels in the same second."""
    with kernels(LEARNERS) as made:
        for _, client in made:
            value(client, IMPORTS)
            value(client, _DDP_CELL)
        free = psutil.virtual_memory().available
        start = time.perf_counter()
        asked = [client.execute(_RUN_IT) for _, client in made]
        times: dict[int, float] = {}
        least = free
        while len(times) < len(made) and time.perf_counter() - start < _DEADLINE_S:
            for number, (_, client) in enumerate(made):
                if number not in times and client.shell_channel.msg_ready():
                    reply = client.get_shell_msg(timeout=1)
                    if reply["parent_header"].get("msg_id") == asked[number]:
                        assert reply["content"]["status"] == "ok", reply["content"]
                        times[number] = time.perf_counter() - start
            least = min(least, psutil.virtual_memory().available)
            time.sleep(0.05)
        pids = [manager.provisioner.pid for manager, _ in made]  # type: ignore[union-attr]
        total = sum(
            process.memory_full_info().pss
            for pid in pids
            for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))
        )
    ended = list(times.values())
    return [
        Figure(
            f"{LEARNERS} learners run a DDP cell in the same second",
            spread(ended),
            f"{len(ended)} of {LEARNERS} have their result; all of them idle: {total / 1e9:.1f} GB, "
            f"{(free - least) / 1e9:.1f} GB more while they run",
            "",
            "each has its result",
        )
    ]
