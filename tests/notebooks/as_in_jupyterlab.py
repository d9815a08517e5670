"""A plugin for `pytest --nbval`: run cells like JupyterLab, with numbers and a history.

nbval asks the kernel not to store the cells that it runs. Then every cell has number 1, and there is no
history. JupyterLab, nbclient and `course outputs` store them, and the course relies on that: `check`
reads the answer from the cells that were run, and a deadlock names its cell by the number in the
margin. The plugin is loaded with `-p tests.notebooks.as_in_jupyterlab`, and by `solutions/conftest.py`.
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
