"""A kernel leaves no process and no file behind, however it ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.kernel.session import GONE_S, Kernel, MakeKernel, wait_until

LOADER = """\
from torch.utils.data import DataLoader

def f(rank, n):
    batches = iter(DataLoader(torch.arange(64), batch_size=1, num_workers=1))
    next(batches)
    time.sleep(600)

launch(f, 2, timeout=900)"""

ENDS: dict[str, Callable[[Kernel], None]] = {
    "killed": Kernel.kill,
    "restarted": lambda kernel: kernel.restart(now=False),
    "restarted at once": lambda kernel: kernel.restart(now=True),
}


def alive(processes: set[psutil.Process]) -> set[psutil.Process]:
    return {p for p in processes if _is_alive(p)}


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two queries
        return False


@pytest.mark.extended
@pytest.mark.parametrize("how", ENDS)
def test_ended_busy_kernel_leaves_nothing_behind(how: str, new_kernel: MakeKernel) -> None:
    """End a kernel with live ranks, and with a launch whose ranks have a DataLoader worker each."""
    kernel = new_kernel()
    kernel.value("%%ranks 2\nkept = 1")
    kernel.begin(LOADER)
    kernel.wait_for_ranks(6)
    processes, folders = kernel.processes(), set(kernel.temp.iterdir())
    assert len(processes) >= 8 and folders
    ENDS[how](kernel)
    wait_until(lambda: not alive(processes), GONE_S, lambda: alive(processes))
    wait_until(lambda: not folders & set(kernel.temp.iterdir()), GONE_S)


@pytest.mark.extended
@pytest.mark.parametrize("how", ENDS)
def test_ended_idle_kernel_leaves_nothing_behind(how: str, new_kernel: MakeKernel) -> None:
    kernel = new_kernel()
    kernel.value("%%ranks 3\nkept = 1")
    processes, folders = kernel.processes(), set(kernel.temp.iterdir())
    assert len(processes) == 5 and folders
    ENDS[how](kernel)
    wait_until(lambda: not alive(processes), GONE_S, lambda: alive(processes))
    wait_until(lambda: not folders & set(kernel.temp.iterdir()), GONE_S)
    if how != "killed":
        shown = kernel.value("from helpers import launch\nlaunch(lambda rank, n: rank, 2).values")
        assert shown == "[0, 1]\n"


@pytest.mark.extended
def test_startup_kill_leaves_nothing_behind(
    new_kernel: MakeKernel,
) -> None:
    kernel = new_kernel()
    (first,) = kernel.servers()
    first.kill()
    wait_until(lambda: not kernel.servers(), GONE_S)
    kernel.begin("launch(lambda rank, n: rank, 2)")
    wait_until(lambda: bool(kernel.servers()), GONE_S)
    kernel.kill()
    wait_until(lambda: not kernel.processes(), GONE_S, kernel.processes)


@pytest.mark.extended
def test_simultaneous_kernels_are_independent(new_kernel: MakeKernel) -> None:
    one, two = new_kernel(), new_kernel()
    source = "def f(rank, n):\n    x = torch.tensor([{0}])\n    dist.all_reduce(x)\n"
    source += "    return x.item()\n"
    first = one.begin(
        source.format(3) + "[launch(f, 3).values for _ in range(20)] == [[9] * 3] * 20"
    )
    second = two.begin(
        source.format(5) + "[launch(f, 2).values for _ in range(20)] == [[10] * 2] * 20"
    )
    assert (one.wait(first).text, two.wait(second).text) == ("True\n", "True\n")
    one.value("%%ranks 2\nkept = 'one'")
    two.value("%%ranks 2\nkept = 'two'")
    one.kill()
    wait_until(lambda: not one.processes(), GONE_S, one.processes)
    assert two.value("%%ranks 2\nkept") == "rank 0 → 'two'\nrank 1 → 'two'\n"


@pytest.mark.extended
def test_live_ranks_clean_up_joblib_memory(new_kernel: MakeKernel) -> None:
    cell = "from joblib import Parallel, delayed\nimport os, math\n"
    cell += "Parallel(n_jobs=2)(delayed(math.sqrt)(i) for i in range(4))\nos.getpid()"
    kernel = new_kernel()
    pids = re.findall(r"→ (\d+)", kernel.value(f"%%ranks 2\n{cell}"))

    def left() -> list[Path]:
        return [path for pid in pids for path in Path("/dev/shm").glob(f"*{pid}*")]

    assert len(pids) == 2 and left()
    kernel.value("%%ranks 2 --fresh\n1")
    wait_until(lambda: not left(), GONE_S, left)
    pids = re.findall(r"→ (\d+)", kernel.value(f"%%ranks 2\n{cell}"))
    kernel.kill()
    wait_until(lambda: not left(), GONE_S, left)
