"""The course's Jupyter kernel: ipykernel, with a rank server that shares its memory of torch.

    import torch, once --fork--> rank server (single thread) --fork--> ranks
         `--goes on as--> ipykernel

An ordinary kernel and its rank server import torch each: twice the time at the start, and twice the memory.
`kernels/python3/kernel.json` starts this module; the server extension (`look`) puts it before the ordinary
kernel of the same name. Where fork is unsafe, or something has started a thread, this is the ordinary kernel.
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
from helpers.ranks.inside import refuse_where_ranks_must_not_start
from helpers.ranks.preload_scan import wanted_by
from helpers.ranks.site import Shared

# Set by jupyter_server to the file of the notebook for which a kernel starts.
_NOTEBOOK = "JPY_SESSION_NAME"
_MOST_BYTES = 16 << 20
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def main() -> None:
    """Be a kernel, with the arguments of `ipykernel_launcher`."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # until there is a cell, a Stop has nothing to stop
    for name, value in HUGE_PAGES.items():
        if os.environ.get(name) == value:  # from kernel.json, read when this process began
            del os.environ[name]
    if _may_fork():
        _share_torch()
    # Not before the fork: the rank server needs none of it.
    from ipykernel.kernelapp import IPKernelApp

    app: Any = IPKernelApp.instance()
    app.initialize()
    # `import helpers` in a cell does this in other kernels; here it has been imported already.
    from helpers import greet_kernel

    greet_kernel()
    app.start()


def _may_fork() -> bool:
    with suppress(LaunchError):
        refuse_where_ranks_must_not_start()
        return sys.platform == "linux" and start_method() == "fork"
    return False


def _share_torch() -> None:
    """Import torch, and what the notebook is about to use of it; fork the rank server."""
    with _one_blas_thread():
        preload.import_to_share(wanted_by(code_of(os.environ.get(_NOTEBOOK, "")).encode()))
        if len(os.listdir("/proc/self/task")) == 1:
            launcher.connect(Shared())


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Have numpy's OpenBLAS start no threads when it is imported, and as many as usual later on."""
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
    """Return the text of a notebook's code cells; nothing where there is no such file."""
    path = Path(notebook)
    # A file of the learner's own may be anything: then the first launch imports what it needs.
    with suppress(OSError, NotebookError, AttributeError, TypeError):
        if path.suffix == ".ipynb" and path.stat().st_size <= _MOST_BYTES:
            cells = read_notebook(path)["cells"]
            return "\n".join(source_of(c) for c in cells if c.get("cell_type") == "code")
    return ""
