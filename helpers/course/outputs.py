"""Run a solved notebook and store its outputs, so that they can be reviewed as a diff.

`course outputs` calls `store_outputs`. A run changes only the outputs: it uses a scratch folder, a separate
progress file and no live displays. Data that differs between runs, such as timings, versions and the state of
widgets, is not stored.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from helpers.course.build import KEEP_OUTPUT
from helpers.course.claims import ClaimError, check_claim, has_claims, wait_until_idle
from helpers.course.notebook_file import (
    Notebook,
    NotebookError,
    cell_metadata,
    check_cell_ids,
    notebook_metadata,
    read_notebook,
    write_notebook,
)
from helpers.ranks.display import LIVE_VARIABLE

CELL_TIMEOUT_S = 300
MAX_RUNS = 3
"""The maximum number of times that a notebook is run until all its claims hold."""


def store_outputs(path: Path) -> None:
    """Run the notebook and write it back with its outputs.

    A notebook with claims about times is run on an idle machine, and again if a claim does not hold.

    Raises:
        NotebookError: A cell that is not tagged `raises-exception` fails or takes longer than
            CELL_TIMEOUT_S, or a claim is false in each of MAX_RUNS runs. The file is not changed.
    """
    notebook = read_notebook(path)
    for run in range(1, MAX_RUNS + 1):
        if has_claims(notebook):
            wait_until_idle()
        try:
            return write_notebook(path, run_notebook(notebook, path.name))
        except ClaimError as error:
            if run == MAX_RUNS:
                raise NotebookError(f"{path.name}, {error}, in {MAX_RUNS} runs") from None


def run_notebook(notebook: Notebook, name: str, *, live: bool = False) -> Notebook:
    """Return the notebook with fresh outputs; `name` is used for the scratch folder and in errors.

    live: whether to store players instead of still pictures, as on a reader's page. Claims are checked only
    if `live` is False. Raises ClaimError if a claim is false.
    """
    check_cell_ids(notebook, name)
    node = nbformat.reads(json.dumps(notebook), as_version=4)
    with tempfile.TemporaryDirectory(prefix="real-ranks-outputs-") as scratch:
        # The kernel's folder contains the notebook, like a learner's folder.
        write_notebook(Path(scratch, name), notebook)
        _run_cells(node, name, scratch, live)
    stored: Notebook = json.loads(nbformat.writes(node))
    for cell in stored["cells"]:
        cell["metadata"] = cell_metadata(cell)
    return stored | {"metadata": notebook_metadata()}


def _run_cells(node: nbformat.NotebookNode, name: str, scratch: str, live: bool) -> None:
    client = NotebookClient(
        node,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": scratch}},
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        # Without this, each kernel warns that its messages can be read on this machine.
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )
    client.on_cell_start = lambda cell, cell_index: _set_live(client, live or _keeps_output(cell))
    if not live:
        client.on_cell_executed = lambda cell, cell_index, execute_reply: check_claim(
            client, cell, cell_index
        )
    try:
        client.execute(env=_kernel_env(scratch))
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookError(f"{name} did not run to its end: {error}") from None


def _keeps_output(cell: nbformat.NotebookNode) -> bool:
    """Return whether the learner's copy contains the cell's output, as for a live page."""
    return KEEP_OUTPUT in cell["metadata"].get("tags", ())


def _set_live(client: NotebookClient, live: bool) -> None:
    assert client.kc is not None  # a kernel exists, because a cell is starting
    # this request is sent before the cell, so it runs first; it is silent, so it is not counted
    client.kc.execute(f"import os; os.environ['{LIVE_VARIABLE}'] = '{int(live)}'", silent=True)


def _kernel_env(scratch: str) -> dict[str, str]:
    env = os.environ | {
        LIVE_VARIABLE: "0",
        "REAL_RANKS_PROGRESS": str(Path(scratch, ".progress.json")),
    }
    # Pictures are for the page, even if this terminal's environment sets a different backend
    env.pop("MPLBACKEND", None)
    return env
