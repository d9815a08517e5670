"""Check a text's claims about a cell's numbers while recording outputs.

The text next to a picture often states which of two times is longer. On a busy machine, the recorded picture
might contradict the text. So such a cell has a claim in its metadata: an expression that must be true after
running the cell, for example `"claim": "seconds['torchrun'] > seconds['launch']"`. `course outputs` stores
nothing unless every claim holds.
"""

from __future__ import annotations

import asyncio
import time

import psutil
from nbclient import NotebookClient
from nbformat import NotebookNode

from helpers.course.notebook_file import Notebook

CLAIM_KEY = "claim"
"""The key of a claim in a cell's metadata."""
_MAX_IDLE_PERCENT = 20.0
"""The percentage of processor use below which a machine counts as idle."""
_IDLE_WITHIN_S = 60.0
_REPLY_WITHIN_S = 60.0


class ClaimError(Exception):
    """A claim of a notebook is false for the outputs just recorded."""


def has_claims(notebook: Notebook) -> bool:
    """Return whether a notebook has claims, which may be false on a busy machine."""
    return any(CLAIM_KEY in cell["metadata"] for cell in notebook["cells"])


def wait_until_idle() -> None:
    """Wait at most _IDLE_WITHIN_S until other programs use little processor time.

    No error is raised if the machine stays busy, because the claims are checked anyway.
    """
    end = time.monotonic() + _IDLE_WITHIN_S
    while psutil.cpu_percent(interval=1.0) > _MAX_IDLE_PERCENT and time.monotonic() < end:
        pass


async def check_claim(client: NotebookClient, cell: NotebookNode, cell_index: int) -> None:
    """Evaluate a cell's claim in the kernel that has just run the cell.

    Raises:
        ClaimError: The claim is false, cannot be evaluated, or has no value after _REPLY_WITHIN_S.
    """
    claim = cell["metadata"].get(CLAIM_KEY)
    if claim is None:
        return
    assert client.kc is not None  # a kernel exists, because a cell was executed
    asked = client.kc.execute("", silent=True, user_expressions={CLAIM_KEY: f"bool({claim})"})
    try:
        value = await asyncio.wait_for(_claim_value(client, asked), _REPLY_WITHIN_S)
    except TimeoutError:
        value = f"no answer after {_REPLY_WITHIN_S:g} s"
    if value != "True":
        raise ClaimError(f"cell {cell_index}: the text next to it claims {claim}, but: {value}")


async def _claim_value(client: NotebookClient, request_id: str) -> str:
    """Return the claim's value or error as text. request_id: the id of the kernel request."""
    while True:
        reply = await client.kc.get_shell_msg(timeout=_REPLY_WITHIN_S)  # type: ignore[union-attr]
        if reply["parent_header"].get("msg_id") == request_id:
            found = reply["content"]["user_expressions"][CLAIM_KEY]
            if found["status"] == "ok":
                return str(found["data"]["text/plain"])
            return f"{found['ename']}: {found['evalue']}"
