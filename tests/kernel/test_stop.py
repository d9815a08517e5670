"""The Stop button: it ends every rank at once, at any moment, and the kernel keeps running."""

from __future__ import annotations

import re
import time

import pytest

from tests.kernel.session import CELL_S, STOP_S, Cell, Kernel, MakeKernel, wait_until

HANGS = {
    "asleep": "def f(rank, n):\n    time.sleep(600)\nlaunch(f, 3, timeout=900)",
    "computing": "def f(rank, n):\n    while True: pass\nlaunch(f, 2, timeout=900)",
    "waiting": "def f(rank, n):\n    if rank: time.sleep(600)\n    dist.barrier()\n"
    "launch(f, 3, timeout=900)",
    "in a live cell": "%%ranks 3 --timeout 900\ntime = __import__('time')\ntime.sleep(600)",
    "with children": "import subprocess\n"
    "def f(rank, n):\n    subprocess.run(['sleep', '600'])\nlaunch(f, 2, timeout=900)",
    "deaf": "import signal\n"
    "def f(rank, n):\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(600)\n"
    "launch(f, 2, timeout=900)",
}


def stopped_and_well(kernel: Kernel, cell: Cell) -> None:
    assert cell.status == "error" and cell.error == "Stopped", cell
    assert "terminated. The kernel is ready for the next cell." in cell.message
    assert "Traceback" not in cell.message and "helpers" not in cell.message
    works(kernel)


def works(kernel: Kernel) -> None:
    """Assert that no rank is left, and that both kinds of cells run."""
    wait_until(lambda: not kernel.ranks(), STOP_S, kernel.ranks)
    shown = kernel.value("launch(lambda rank, n: rank, 2).values")
    assert "[0, 1]\n" in shown.splitlines(keepends=True), (
        shown
    )  # a note may say that the server is new
    assert "rank 0 → 0\nrank 1 → 1\n" in kernel.value("%%ranks 2\nrank")


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", HANGS)
def test_stop_ends_all_live_ranks(how: str, kernel: Kernel) -> None:
    request = kernel.begin(HANGS[how])
    kernel.wait_for_ranks(2)
    kernel.interrupt()
    wait_until(lambda: not kernel.ranks(), STOP_S, kernel.ranks)
    stopped_and_well(kernel, kernel.wait(request))


def test_stop_keeps_prints_and_locates_ranks(kernel: Kernel) -> None:
    program = """
def f(rank, n):
    print("hello from", rank)
    open(f"printed-{rank}", "w").close()
    while True:
        pass
launch(f, 2, timeout=900)"""
    request = kernel.begin(program)
    wait_until(lambda: len(list(kernel.folder.glob("printed-*"))) == 2, CELL_S)
    kernel.interrupt()
    cell = kernel.wait(request)
    assert cell.error == "Stopped" and "Stopped after " in cell.text, cell
    for rank in range(2):
        assert f"rank {rank} | hello from {rank}" in cell.text
        assert re.search(
            rf"rank {rank}: was in its own code at cell \[\d+\], line [3-5]", cell.text
        )
    works(kernel)


_SLEEPS = "def f(rank, n):\n    time.sleep(600)\n"
_POOL = "from concurrent.futures import ThreadPoolExecutor\n"
THREADS = {
    "in a pool": f"{_SLEEPS}{_POOL}with ThreadPoolExecutor(1) as pool:\n"
    "    pool.submit(launch, f, 2, timeout=900).result()",
    "two in a pool": f"{_SLEEPS}{_POOL}with ThreadPoolExecutor(2) as pool:\n"
    "    list(pool.map(lambda n: launch(f, n, timeout=900), (2, 3)))",
    "awaited": f"import asyncio\n{_SLEEPS}await asyncio.to_thread(launch, f, 2, timeout=900)",
    "joined": f"import threading\n{_SLEEPS}"
    "t = threading.Thread(target=launch, args=(f, 2), kwargs={'timeout': 900})\nt.start()\nt.join()",
    "next to one of the main thread": f"{_SLEEPS}{_POOL}with ThreadPoolExecutor(1) as pool:\n"
    "    pool.submit(launch, lambda rank, n: time.sleep(1), 2)\n    launch(f, 2, timeout=900)",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", THREADS)
def test_stop_ends_launches_of_other_threads(how: str, kernel: Kernel) -> None:
    request = kernel.begin(THREADS[how])
    kernel.wait_for_ranks(2)
    kernel.interrupt()
    wait_until(lambda: not kernel.ranks(), STOP_S, kernel.ranks)
    cell = kernel.wait(request)
    assert cell.error in {"KeyboardInterrupt", "CancelledError", "Stopped"}, cell
    works(kernel)


def test_stop_ends_background_launch_between_cells(kernel: Kernel) -> None:
    start = (
        "import threading\nthreading.Thread(target=launch, args=(f, 2), kwargs={'timeout': 900})"
    )
    kernel.value(f"{_SLEEPS}{start}.start()")
    kernel.wait_for_ranks(2)
    kernel.interrupt()
    wait_until(lambda: not kernel.ranks(), STOP_S, kernel.ranks)
    works(kernel)


def test_earlier_stop_leaves_later_launch_running(kernel: Kernel) -> None:
    kernel.interrupt()
    cell = f"{_POOL}with ThreadPoolExecutor(1) as pool:\n"
    cell += "    print(pool.submit(launch, lambda rank, n: rank, 2).result().values)"
    assert kernel.value(cell) == "[0, 1]\n"


def test_stop_ends_launch_before_rank_start(kernel: Kernel) -> None:
    """A Stop reaches the launch while it pickles its arguments, which is its first step."""
    program = """
import os, signal, time
class Stopping:
    def __reduce__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
launch(lambda rank, n, what: rank, 2, args=(Stopping(),))"""
    stopped_and_well(kernel, kernel.run(program))


@pytest.mark.parametrize("times", [2, 5])
def test_repeated_stops_leave_kernel_usable(times: int, kernel: Kernel) -> None:
    kernel.begin(HANGS["asleep"])
    kernel.wait_for_ranks(3)
    for _ in range(times):
        kernel.interrupt()
    wait_until(lambda: not kernel.ranks(), STOP_S, kernel.ranks)
    works(kernel)  # the second press may interrupt Jupyter's code, which loses the cell's reply


@pytest.mark.extended
@pytest.mark.parametrize(
    "start",
    ["launch(lambda rank, n: rank, 16)", "get_ipython().run_cell_magic('ranks', '16', '1')"],
)
def test_stop_works_throughout_startup(start: str, kernel: Kernel) -> None:
    """Press Stop at many moments of a start, from before its beginning until after its end."""
    kernel.value("odd = []")
    source = f"try:\n    {start}\nexcept KeyboardInterrupt:\n    pass\n"
    source += "except BaseException as error:\n    odd.append(error)"
    for step in range(12):
        kernel.begin(source)
        time.sleep(0.02 * step)
        kernel.interrupt()  # the press may interrupt Jupyter's code, which loses the cell's reply
        assert kernel.value("odd") == "[]\n"
        kernel.value("from helpers.ranks.magics import end_live_world; end_live_world('a test')")
        wait_until(lambda: not kernel.ranks(), STOP_S, kernel.ranks)
    works(kernel)


@pytest.mark.extended
def test_stop_during_server_start_is_harmless(new_kernel: MakeKernel) -> None:
    kernel = new_kernel()
    for process in kernel.servers():
        process.kill()
    wait_until(lambda: not kernel.servers(), STOP_S)
    request = kernel.begin("launch(lambda rank, n: rank, 2)")
    time.sleep(0.3)  # the new server imports torch for longer than that
    kernel.interrupt()
    cell = kernel.wait(request)
    assert cell.status == "ok" or cell.error in {"Stopped", "KeyboardInterrupt"}, cell
    works(kernel)
    assert len(kernel.servers()) == 1


def test_idle_stop_keeps_live_ranks(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    kernel.interrupt()
    assert "rank 1 → 1" in kernel.value("%%ranks 2\nkept")


def test_next_cell_reports_stopped_live_ranks(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    request = kernel.begin("%%ranks 2 --timeout 900\nimport time; time.sleep(600)")
    time.sleep(0.3)
    kernel.interrupt()
    assert kernel.wait(request).error == "Stopped"
    shown = kernel.value("%%ranks 2\n'kept' in globals()")
    assert "new ranks" in shown and "you stopped the cell" in shown and "False" in shown


@pytest.mark.extended
def test_stop_removes_live_view(new_kernel: MakeKernel) -> None:
    kernel = new_kernel(REAL_RANKS_LIVE="1")
    request = kernel.begin(HANGS["asleep"])
    kernel.wait_for_ranks(3)
    time.sleep(2.5)  # the view describes each rank's activity after 2 s
    kernel.interrupt()
    cell = kernel.wait(request)
    assert any("running for" in view for view in cell.updates)
    assert "running for" not in cell.updates[-1], "it says that they run, and they have ended"


ENDLESS = """
from helpers import check
def ping_pong(rank, world_size, ball, rounds):
    open(f"FOLDER/began-{rank}", "w").close()
    while True:
        pass
check(ping_pong)"""


@pytest.mark.extended
@pytest.mark.parametrize("live", ["0", pytest.param("1", marks=pytest.mark.extended)])
def test_long_check_shows_rank_activity(new_kernel: MakeKernel, live: str) -> None:
    kernel = new_kernel(REAL_RANKS_LIVE=live)
    request = kernel.begin(ENDLESS.replace("FOLDER", str(kernel.folder)))
    wait_until(lambda: len(list(kernel.folder.glob("began-*"))) == 2, CELL_S)
    time.sleep(
        2.8 if live == "1" else 0.0
    )  # a view appears after 2 s, and the ranks are ended after 4 s
    kernel.interrupt()
    cell = kernel.wait(request)
    assert cell.error == "Stopped", cell
    views = [view for view in [cell.text, *cell.updates] if "Checking ping_pong for" in view]
    assert bool(views) is (live == "1")
    assert not cell.updates or "Checking" not in cell.updates[-1]
    assert "The check of ping_pong was stopped after" in cell.text
    assert re.search(r"rank 0: was in its own code at cell \[2\], line [4-7]", cell.text), cell.text
