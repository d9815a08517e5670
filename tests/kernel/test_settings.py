"""What cells have set is on the ranks, is told once where it cannot be, and does not change a check."""

from __future__ import annotations

from tests.kernel.session import MakeKernel

READ = "launch(lambda rank, n: torch.get_default_dtype(), 2)"


def test_ranks_that_stay_begin_with_what_was_set(new_kernel: MakeKernel) -> None:
    kernel = new_kernel()
    kernel.value("import sys\ntorch.set_default_dtype(torch.float64)\nsys.setrecursionlimit(4567)")
    shown = kernel.value("%%ranks 2\nimport sys\ntorch.ones(1).dtype, sys.getrecursionlimit()")
    assert shown.count("(torch.float64, 4567)") == 2


def test_what_cannot_be_carried_is_told_once(new_kernel: MakeKernel) -> None:
    kernel = new_kernel()
    kernel.value(
        "import logging, logging.handlers\nopen('settings.log', 'w').close()\n"
        "logging.getLogger('a').addHandler(logging.handlers.RotatingFileHandler('settings.log'))"
    )
    shown = kernel.value(READ)
    kernel.value("import os\nos.remove('settings.log')")
    assert "Set in the kernel, not on the ranks: handlers of logging" in shown
    assert "note" not in kernel.value(READ)


def test_a_new_kernel_has_set_nothing(new_kernel: MakeKernel) -> None:
    """Else each launch would send it, and a note might stand under each Run."""
    kernel = new_kernel()
    kernel.value("import numpy as np, torch.optim, torch.distributed.checkpoint, matplotlib.pyplot")
    assert "note" not in kernel.value("%%ranks 2\ntorch.rand(1) > 2")
    program = """
from helpers.ranks import own_modules, seeds
list(own_modules.changed()), seeds.seeded_states(())"""
    assert kernel.value(program) == "([], {})\n"
