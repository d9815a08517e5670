"""Run the course's Jupyter kernel: ipykernel, with a rank server that shares torch's memory with it.

    import torch, once --fork--> rank server (single thread) --fork--> ranks
         `--continues as--> ipykernel

An ordinary kernel and its rank server each import torch, which takes twice the time at the start, and twice
the memory. `kernels/python3/kernel.json` starts this module; the server extension (`look`) gives it
precedence over the ordinary kernel of the same name. If fork is unsafe, or something has started a thread,
this is the ordinary kernel.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from helpers.course.notebook_file import NotebookError, read_notebook, source_of
from helpers.ranks import launcher, preload
from helpers.ranks.connection import HUGE_PAGES, start_method
from helpers.ranks.failures import LaunchError
from helpers.ranks.preload_scan import find_imports
from helpers.ranks.rank_context import check_launch_allowed
from helpers.ranks.site import ForkingSite

# jupyter_server sets this variable to the file of the notebook for which a kernel starts.
_NOTEBOOK = "JPY_SESSION_NAME"
_MAX_BYTES = 16 << 20
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def main() -> None:
    """Run a kernel with the arguments of `ipykernel_launcher`."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # before the first cell, there is nothing to interrupt
    for name, value in HUGE_PAGES.items():
        # Kernel.json sets this variable, which was read when this process began
        if os.environ.get(name) == value:
            del os.environ[name]
    if _may_fork():
        _share_torch()
    # Import this after the fork, because the rank server does not need it.
    from ipykernel.kernelapp import IPKernelApp

    app: Any = IPKernelApp.instance()
    app.initialize()
    # In other kernels `import helpers` in a cell does this. Here the package is already imported.
    from helpers import greet_kernel

    greet_kernel()
    app.start()


def _may_fork() -> bool:
    with suppress(LaunchError):
        check_launch_allowed()
        return sys.platform == "linux" and start_method() == "fork"
    return False


def _share_torch() -> None:
    """Import torch, and those parts of it that the notebook uses; fork the rank server."""
    with _one_blas_thread():
        preload.import_for_sharing(find_imports(code_of(os.environ.get(_NOTEBOOK, "")).encode()))
        if len(os.listdir("/proc/self/task")) == 1:
            launcher.connect(ForkingSite())


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep numpy's OpenBLAS from starting threads during its import; later it starts as many as usual."""
    given = os.environ.get(_BLAS_THREADS)
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS_THREADS]
        if given is not None:
            os.environ[_BLAS_THREADS] = given
    usual = given or os.environ.get("OMP_NUM_THREADS") or str(len(os.sched_getaffinity(0)))
    if usual.isdecimal() and usual != "1":
        from threadpoolctl import threadpool_limits

        threadpool_limits(int(usual), user_api="blas")


def code_of(notebook: str) -> str:
    """Return the text of a notebook's code cells, or "" if there is no such file."""
    path = Path(notebook)
    # A learner's own file may contain anything. In that case the first launch imports what it needs.
    with suppress(OSError, NotebookError, AttributeError, TypeError):
        if path.suffix == ".ipynb" and path.stat().st_size <= _MAX_BYTES:
            cells = read_notebook(path)["cells"]
            return "\n".join(source_of(c) for c in cells if c.get("cell_type") == "code")
    return ""
