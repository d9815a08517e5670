"""Run the course's Jupyter kernel: ipykernel, with a rank server that shares torch's memory with it.

`kernels/python3/kernel.json` starts this module; the server extension (`look`) gives it precedence over the
ordinary kernel of the same name. If fork is unsafe, or a thread has been started, this is the same as the
ordinary kernel.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from helpers.course.open_notebook import cells_of_open_notebook
from helpers.ranks.connection import HUGE_PAGES
from helpers.ranks.preload_scan import find_imports
from helpers.ranks.shared_torch import share_torch


def main() -> None:
    """Run a kernel with the arguments of `ipykernel_launcher`."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # an interrupt before the first cell would have no effect
    for name, value in HUGE_PAGES.items():
        # kernel.json sets this variable, which was read at the start of this process
        if os.environ.get(name) == value:
            del os.environ[name]
    # If the notebook cannot be read, the first launch imports the needed modules.
    share_torch(find_imports("\n".join(cells_of_open_notebook()).encode()))
    # Import this after the fork, because the rank server does not need it.
    from ipykernel.kernelapp import IPKernelApp

    app: Any = IPKernelApp.instance()
    app.initialize()
    # In other kernels, this is done by `import helpers` in a cell, but here the package is already imported.
    from helpers.course.greet import greet_kernel

    greet_kernel()
    app.start()
