"""A plugin for `pytest --nbval`: run cells as JupyterLab does, so that they count.

nbval asks the kernel not to store what it runs: then every cell is number 1 and the kernel has no
history. JupyterLab, nbclient and `course outputs` store it, and the course speaks of it: `check`
reads the answer from the cells that were run, and a deadlock names its cell by the number in the
margin. Loaded with `-p tests.notebooks.as_in_jupyterlab`, and by `solutions/conftest.py`.
"""

from __future__ import annotations

import os
import tempfile

from nbval.kernel import RunningKernel  # type: ignore[import-untyped]


def _execute(kernel: RunningKernel, cell_input: str, allow_stdin: bool | None = None) -> str:
    sent: str = kernel.kc.execute(
        cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
    )
    return sent


def pytest_configure() -> None:
    os.environ.setdefault("REAL_RANKS_LIVE", "0")
    os.environ.setdefault("REAL_RANKS_PROGRESS", os.path.join(tempfile.mkdtemp(), "progress.json"))
    RunningKernel.execute_cell_input = _execute
