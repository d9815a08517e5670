"""Cells' settings hold on the ranks, are reported once if they cannot be sent, and do not change a check."""

from __future__ import annotations

import json

import pytest

from helpers.course.workspace import find_workspace
from tests.kernel.session import Kernel, MakeKernel

READ = "launch(lambda rank, n: torch.get_default_dtype(), 2)"


@pytest.mark.extended
def test_live_ranks_inherit_kernel_settings(forked_kernel: MakeKernel) -> None:
    kernel = forked_kernel()
    kernel.value("torch.set_default_dtype(torch.float64)\ntorch.set_printoptions(precision=2)")
    shown = kernel.value("%%ranks 2\ntorch.ones(1).dtype, str(torch.tensor(1 / 3))")
    assert shown.count("(torch.float64, 'tensor(0.33)')") == 2


@pytest.mark.extended
def test_live_ranks_log_each_line_once(forked_kernel: MakeKernel) -> None:
    kernel = forked_kernel()
    kernel.value("import logging\nlogging.basicConfig(level=logging.INFO, format='%(message)s!')")
    for _ in range(2):
        shown = kernel.value("%%ranks 1\nimport logging\nlogging.info('hello')")
        assert shown.count("hello!") == 1


@pytest.mark.extended
def test_sends_replaced_library_functions(forked_kernel: MakeKernel) -> None:
    kernel = forked_kernel()
    kernel.value("import torch.nn.functional as F\ndef mine(x):\n    return x + 100\nF.gelu = mine")
    assert kernel.value("launch(lambda rank, n: F.gelu is mine, 1).values") == "[True]\n"
    assert "True" in kernel.value("%%ranks 1 --send mine\ntorch.nn.functional.gelu is mine")


@pytest.mark.extended
def test_reports_untransferable_settings_once(forked_kernel: MakeKernel) -> None:
    kernel = forked_kernel()
    kernel.value("import sys\nsys.setrecursionlimit(4567)")
    assert "Set in the kernel, not on the ranks: setrecursionlimit()" in kernel.value(READ)
    assert "note" not in kernel.value(READ)


@pytest.mark.extended
def test_transfers_or_reports_open_contexts(
    forked_kernel: MakeKernel,
) -> None:
    kernel = forked_kernel()
    kernel.value("def f(rank, n):\n    return torch.is_grad_enabled()")
    carried = "with torch.no_grad():\n    run = launch(f, 2)\nrun.values, run.notes"
    assert kernel.value(carried) == "([False, False], ())\n"
    named = "with torch.autocast('cpu'), torch.autograd.graph.save_on_cpu():\n"
    named += "    run = launch(f, 2)\nrun.notes"
    note = "Set in the kernel, not on the ranks: autocast, hooks of saved tensors."
    told = kernel.value(named)
    assert f"({note!r},)\n" in told and told.count(f"note: {note}") == 1
    assert kernel.value(named) == "()\n", "it is not news"
    assert kernel.value(carried).endswith(", ())\n")
    assert f"({note!r},)\n" in kernel.value(named), "it was closed and opened again"
    assert kernel.value("launch(f, 1).values") == "[True]\n"


@pytest.mark.extended
def test_sends_modules_with_cyclic_references(
    forked_kernel: MakeKernel,
) -> None:
    kernel = forked_kernel()
    ring = "class Node: pass\\nfirst, second = Node(), Node()\\nfirst.next, second.next = second, first\\n"
    kernel.value(
        f"from pathlib import Path\nn = Path('ring.py').write_text('{ring}size = 2')\nimport ring"
    )
    kernel.value("ring.size = 5")
    shown = kernel.value(
        "launch(lambda rank, n: (ring.first.next.next is ring.first, ring.size), 1).values"
    )
    kernel.value("Path('ring.py').unlink()")
    assert shown == "[(True, 5)]\n"


@pytest.mark.extended
def test_new_kernel_has_no_changed_settings(new_kernel: MakeKernel) -> None:
    """Otherwise each launch would send these settings, and a note could appear below every Run."""
    kernel = new_kernel()
    kernel.value("import numpy as np, torch.optim, torch.distributed.checkpoint, matplotlib.pyplot")
    assert "note" not in kernel.value("%%ranks 2\ntorch.rand(1) > 2")
    program = """
from helpers.ranks import own_modules, seeds
list(own_modules.changed_values()), seeds.seeded_states((), ["seed"])"""
    assert kernel.value(program) == "([], {})\n"


OTHER_SETTINGS = """
import numpy as np, os, random, sys, warnings
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True)
torch.set_printoptions(precision=1)
torch.set_autocast_enabled("cpu", True)
warnings.simplefilter("error")
sys.path[:] = [each for each in sys.path if "site-packages" not in each]
os.environ.update(TORCH_DISTRIBUTED_DEBUG="nothing", GLOO_SOCKET_IFNAME="none", TZ="Asia/Tokyo", MINE="set")
os.chdir("/")
torch.manual_seed(0), random.seed(0), np.random.seed(0)"""
STATE = """(
    torch.initial_seed(), torch.get_rng_state().sum().item(),
    random.getstate()[1][::100], np.random.get_state()[1].sum(),
    torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_default_device(),
    torch.is_autocast_enabled("cpu"), torch.are_deterministic_algorithms_enabled(), len(warnings.filters),
    list(sys.path), dict(os.environ), os.getcwd())"""
WRONG = """
import os
def weighted_average_gradients(*anything):
    raise ValueError(f"{os.environ.get('MINE')} {os.getcwd() == '/'} {torch.rand(1).dtype}")"""


@pytest.mark.soak  # `tests/checks` tests this each time, without a kernel
def test_check_ignores_kernel_settings(forked_kernel: MakeKernel) -> None:
    """The words for a right and a wrong answer are the same, and the cells' settings are unchanged."""
    kernel = forked_kernel()
    _run_solved(kernel, "08_synchronous_sgd")
    kernel.run(WRONG)
    kernel.value("from helpers import check")
    checks = "for fn in train_synchronously, weighted_average_gradients:\n    print(check(fn))"
    plainly = kernel.value(checks)
    assert "passed" in plainly and "ValueError: None False torch.float32" in plainly
    kernel.value(OTHER_SETTINGS)
    before = kernel.value(STATE)
    assert kernel.value(checks) == plainly
    assert kernel.value(STATE) == before and "Asia/Tokyo" in before
    with_blocks = "with torch.inference_mode(), torch.device('meta'), torch.autocast('cpu'):\n    "
    assert kernel.value(with_blocks + "print(check(train_synchronously))") in plainly


def _run_solved(kernel: Kernel, notebook: str) -> None:
    """Run the cells of the reference solutions that contain imports and definitions."""
    path = find_workspace().root / "solutions" / f"{notebook}.ipynb"
    cells = json.loads(path.read_text())["cells"]
    first, *others = ("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    kernel.value(first)
    for source in others:
        if "BEGIN SOLUTION" in source or source.startswith(("import", "from", "def", "class")):
            kernel.run(source)  # further parts of such a cell may need cells that are left out
