"""Run the course's Jupyter kernel: ipykernel, with a rank server that shares torch's memory with it.

`kernels/python3/kernel.json` starts this module; the server extension (`look`) gives it precedence over the
ordinary kernel of the same name. If fork is unsafe, or something has started a thread, this is the ordinary
kernel.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from helpers.course.notebook_file import NotebookError, read_notebook, source_of
from helpers.ranks.connection import HUGE_PAGES
from helpers.ranks.preload_scan import find_imports
from helpers.ranks.shared_torch import share_torch

NOTEBOOK_VARIABLE = "JPY_SESSION_NAME"
"""jupyter_server sets this variable to the file of the notebook for which a kernel starts."""
_MAX_BYTES = 16 << 20


def main() -> None:
    """Run a kernel with the arguments of `ipykernel_launcher`."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # before the first cell, there is nothing to interrupt
    for name, value in HUGE_PAGES.items():
        # Kernel.json sets this variable, which was read when this process began
        if os.environ.get(name) == value:
            del os.environ[name]
    share_torch(find_imports("\n".join(cells_in(os.environ.get(NOTEBOOK_VARIABLE, ""))).encode()))
    # Import this after the fork, because the rank server does not need it.
    from ipykernel.kernelapp import IPKernelApp

    app: Any = IPKernelApp.instance()
    app.initialize()
    # In other kernels `import helpers` in a cell does this. Here the package is already imported.
    from helpers import greet_kernel

    greet_kernel()
    app.start()


def cells_in(notebook: str) -> list[str]:
    """Return the texts of a notebook's code cells, or [] if there is no such file."""
    path = Path(notebook)
    # A learner's own file may contain anything. In that case the first launch imports what it needs.
    with suppress(OSError, NotebookError, AttributeError, TypeError):
        if path.suffix == ".ipynb" and path.stat().st_size <= _MAX_BYTES:
            cells = read_notebook(path)["cells"]
            return [source_of(c) for c in cells if c.get("cell_type") == "code"]
    return []
