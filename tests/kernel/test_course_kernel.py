"""The course's kernel: it forks its rank server, and otherwise behaves and ends like any other kernel."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from helpers.course.look import KERNELS
from helpers.course.open_notebook import code_cells
from tests.kernel.session import GONE_S, STOP_S, Kernel, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel forks")

IMPORTS = "from helpers import *\nimport torch, torch.distributed as dist, os, time"
LAUNCH = "launch(lambda rank, n: rank, 2).values"
# Facts about the setup of their process that cells can see.
SET_UP = """
import numpy, threadpoolctl, locale, signal, sys
names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GLIBC_TUNABLES", "RES_OPTIONS")
print(
    {name: os.environ.get(name) for name in names},
    torch.get_num_threads(),
    sorted((i["prefix"], i["num_threads"]) for i in threadpoolctl.threadpool_info()),
    signal.getsignal(signal.SIGINT),
    "" in sys.path,
    torch.distributed.get_debug_level(),
    launch(lambda rank, n: (torch.get_num_threads(), os.environ["OMP_NUM_THREADS"], sys.argv), 2).values,
)"""


def make(**env: str) -> Kernel:
    kernel = Kernel(spec=KERNELS / "python3", **env)
    try:
        kernel.value(IMPORTS)
    except BaseException:
        kernel.close()
        raise
    return kernel


@pytest.fixture(scope="module")
def long_lived() -> Iterator[Kernel]:
    kernel = make()
    try:
        yield kernel
    finally:
        kernel.close()


@pytest.mark.extended
def test_forked_server_shares_torch_memory(kernel: Kernel) -> None:
    assert kernel.value(LAUNCH) == "[0, 1]\n"
    (server,) = kernel.servers()
    assert server.cmdline() == psutil.Process(kernel.pid).cmdline()
    private = server.memory_full_info().uss
    assert private < 80e6, f"{private / 1e6:.0f} MB"  # torch alone takes 150


@pytest.mark.extended
def test_process_setup_matches_ordinary_kernel(kernel: Kernel) -> None:
    ordinary = Kernel()
    try:
        ordinary.value(IMPORTS)
        assert kernel.value(SET_UP) == ordinary.value(SET_UP)
    finally:
        ordinary.close()


def test_stop_ends_ranks_and_keeps_server(kernel: Kernel) -> None:
    servers = kernel.servers()
    request = kernel.begin("def f(rank, n):\n    time.sleep(600)\nlaunch(f, 3, timeout=900)")
    kernel.wait_for_ranks(3)
    kernel.interrupt()
    assert kernel.wait(request).error == "Stopped"
    wait_until(lambda: not kernel.ranks(), STOP_S, kernel.ranks)
    assert kernel.value(LAUNCH) == "[0, 1]\n" and kernel.servers() == servers


@pytest.mark.extended
def test_replaces_killed_server() -> None:
    kernel = make()
    try:
        (server,) = kernel.servers()
        server.kill()
        wait_until(lambda: not kernel.servers(), GONE_S)
        run = kernel.value("run = launch(lambda rank, n: rank, 2)\nprint(run.values, run.notes)")
        assert run.startswith("[0, 1] ('the rank server had been killed"), run
        kernel.value("%%ranks 2\nkept = 1")
        kernel.kill()
        wait_until(lambda: not kernel.processes(), GONE_S, kernel.processes)
    finally:
        kernel.close()


@pytest.mark.extended
def test_killed_kernel_restarts_without_leftovers() -> None:
    kernel = make()
    try:
        kernel.value("%%ranks 3\nkept = 1")
        folders = set(kernel.temp.iterdir())
        assert len(kernel.processes()) == 5 and folders
        kernel.kill()
        wait_until(lambda: not kernel.processes(), GONE_S, kernel.processes)
        wait_until(lambda: not folders & set(kernel.temp.iterdir()), GONE_S)
        kernel.restart(now=True)
        kernel.value(IMPORTS)
        kernel.value("%%ranks 3\nkept = 1")
        kernel.restart(now=False)
        kernel.value(IMPORTS)
        assert kernel.value(LAUNCH) == "[0, 1]\n" and not kernel.ranks()
    finally:
        kernel.close()


@pytest.mark.extended
def test_imports_named_modules_before_fork(tmp_path: Path) -> None:
    code = {"cell_type": "code", "source": ["model = torch.nn.parallel.DistributedDataParallel(m)"]}
    text = {"cell_type": "markdown", "source": "pipelining is of another notebook"}
    file = tmp_path / "mine.ipynb"
    file.write_text(json.dumps({"cells": [code, text]}))
    kernel = make(JPY_SESSION_NAME=str(file))
    try:
        found = "import sys; print([n in sys.modules for n in {}])"
        names = ["torch._dynamo", "torch.distributed.pipelining"]
        assert kernel.value(found.format(names)) == "[True, False]\n"
        (server,) = kernel.servers()
        assert server.memory_full_info().uss < 100e6
    finally:
        kernel.close()


@pytest.mark.parametrize("content", ["", "[]", '{"cells": 1}', '{"cells": [1]}', "\0"])
def test_invalid_notebook_has_no_code_cells(tmp_path: Path, content: str) -> None:
    file = tmp_path / "mine.ipynb"
    file.write_text(content)
    assert code_cells(str(file)) == []
    assert code_cells(str(tmp_path)) == code_cells("") == []


@pytest.mark.extended
def test_spawn_setting_disables_server_fork() -> None:
    kernel = make(REAL_RANKS_START="spawn")
    try:
        (server,) = kernel.servers()
        assert server.cmdline() != psutil.Process(kernel.pid).cmdline()
    finally:
        kernel.close()
