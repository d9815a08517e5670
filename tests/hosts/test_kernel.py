"""Hosts in a notebook's kernel: live ranks, Stop, and all ways to end the kernel."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.kernel.session import CELL_S, Kernel, wait_until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(240)]

STOP_S, GONE_S = 2.0, 15.0
HANGS = "def f(rank, n):\n    time.sleep(600)\nwith machines:\n    launch(f, 4, timeout=900)"


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    """A kernel with two open hosts, which are processes of this machine."""
    kernel = Kernel()
    try:
        kernel.value("from helpers import *\nfrom helpers import hosts\nimport os, time")
        kernel.value("machines = hosts.local(2).open()")
        yield kernel
    finally:
        # Dask leaves an empty folder, in which its workers would have stored data that exceeds their memory
        shutil.rmtree(kernel.temp / "dask-scratch-space", ignore_errors=True)
        kernel.close()


def _ranks(kernel: Kernel) -> list[psutil.Process]:
    """Return the child processes of the hosts' rank servers."""
    servers = [p for p in kernel.processes() if "ranks.server" in " ".join(p.cmdline())]
    far = [each for each in servers if each.ppid() != kernel.pid]
    return [rank for each in far for rank in each.children()]


def test_cells_run_and_stop_on_hosts(kernel: Kernel) -> None:
    kernel.value("%%ranks 3 --where machines\nkept = rank * 10")
    shown = kernel.value(
        "%%ranks 3 --where machines\nkept + 1, os.environ['GROUP_RANK']".replace(
            "os.", "__import__('os')."
        )
    )
    assert "rank 0 → (1, '0')" in shown and "rank 2 → (21, '1')" in shown
    assert "'host-1'" in kernel.value(
        "with machines:\n    print(launch(lambda rank, n: rank, 2).hosts)"
    )

    request = kernel.begin(HANGS)
    wait_until(lambda: len(_ranks(kernel)) == 7, CELL_S)  # three of them are the live ranks
    kernel.interrupt()
    start = time.monotonic()
    cell = kernel.wait(request)
    assert cell.error == "Stopped", cell
    left_s = STOP_S - (time.monotonic() - start)
    wait_until(lambda: len(_ranks(kernel)) == 3, left_s, lambda: _ranks(kernel))

    cell = kernel.run("%%ranks 3 --where machine\n1")
    assert cell.error == "LaunchError" and "no hosts with this name" in cell.message
    assert "rank 0 → 1" in kernel.value("%%ranks 2\nrank + 1"), "at home"
    kernel.value("machines.close()")
    assert "(1, '0')" not in kernel.value("%%ranks 2 --where machines\nrank"), "it opens again"


ENDS: dict[str, Callable[[Kernel], None]] = {
    "killed": Kernel.kill,
    "restarted": lambda kernel: kernel.restart(now=False),
    "restarted at once": lambda kernel: kernel.restart(now=True),
}


@pytest.mark.parametrize("how", ENDS)
def test_ended_kernel_leaves_hosts_clean(how: str, kernel: Kernel) -> None:
    kernel.value("%%ranks 2 --where machines\nkept = 1")
    kernel.begin(HANGS)
    wait_until(lambda: len(_ranks(kernel)) == 6, CELL_S)
    before = kernel.processes()
    ENDS[how](kernel)
    wait_until(
        lambda: not [p for p in before if _lives(p)],
        GONE_S,
        lambda: [p for p in before if _lives(p)],
    )
    wait_until(lambda: not list(kernel.temp.glob("real-ranks-*")), GONE_S)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
