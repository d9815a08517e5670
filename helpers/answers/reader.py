"""Read answers from a notebook file in a child process with limited time and memory.

    read_answers -- path, names --> child: read_notebook, build_answer -- JSON --> Answer | Problem
         `-- deadline, size cap, kill            `-- rlimits on CPU, memory, files

`course check` and graders call this module. Parsing a hostile notebook may take any amount of time and
memory, or crash the interpreter. In the child, parsing ends at the deadline at the latest, and the notebook
is then reported as unreadable.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from helpers.answers.data import Answer, Origin, Problem
from helpers.answers.notebook import UnreadableNotebook, printable_name

__all__ = ["AnswerOrProblem", "UnreadableNotebook", "read_answers"]

MAX_REPLY_BYTES = 16_000_000
_CHUNK_BYTES = 1 << 16
_CHILD_MODULE = "helpers.answers.reader_child"

_ADVICE = "Look for a very large or very deeply nested cell."

AnswerOrProblem = dict[str, Answer | Problem]
"""{name: result} for the requested answers."""


def read_answers(
    path: str | os.PathLike[str], names: Sequence[str], timeout_s: float = 20.0
) -> AnswerOrProblem:
    """Build the answers called `names` from the notebook at `path`.

    Args:
        path: The notebook's file.
        names: Names of functions or classes.
        timeout_s: The time for building all answers, in seconds.

    Raises:
        UnreadableNotebook: The file is not a notebook, or reading it took more time or memory than any
            notebook needs.
    """
    name = printable_name(path)
    request = {"path": os.fsdecode(path), "names": list(names), "timeout_s": timeout_s}
    reply, status = _ask_child(json.dumps(request).encode(), time.monotonic() + timeout_s)
    if reply is None:
        raise UnreadableNotebook(f"{name} could not be read within {timeout_s:g} s. {_ADVICE}")
    try:
        data = json.loads(reply)
    except ValueError:
        # the reply is incomplete because the child exceeded a limit or crashed
        why = f"its reader {_describe_exit(status)}"
        raise UnreadableNotebook(f"{name} could not be read: {why}. {_ADVICE}") from None
    if "unreadable" in data:
        raise UnreadableNotebook(data["unreadable"])
    return {name: _decode_entry(entry) for name, entry in data["answers"].items()}


def _ask_child(request: bytes, deadline: float) -> tuple[bytes | None, int]:
    """Return (the child's output, its exit status). The output is None if the child missed the deadline."""
    child = subprocess.Popen(
        # use -P, because the current folder may contain a student's json.py
        [sys.executable, "-P", "-m", _CHILD_MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_child_environment(),
        start_new_session=True,  # only the caller reacts to Ctrl-C, and it then ends the child below
    )
    assert child.stdin is not None and child.stdout is not None  # both are pipes
    try:
        # the child may exit before it has read its request
        with suppress(BrokenPipeError), child.stdin:
            child.stdin.write(request)
        reply = _read_until(child.stdout, deadline)
        return reply, child.wait(max(0.1, deadline - time.monotonic())) if reply is not None else 0
    except subprocess.TimeoutExpired:
        return None, 0
    finally:
        # kill the child even if it has closed its output and is still running
        child.kill()
        child.wait()
        child.stdout.close()


def _read_until(pipe: IO[bytes], deadline: float) -> bytes | None:
    """Return all bytes until the pipe closes, or None if the deadline or the size limit is exceeded."""
    received = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and len(received) <= MAX_REPLY_BYTES:
            if not selector.select(left):
                continue
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
            if not chunk:
                return bytes(received)
            received += chunk
    return None


def _child_environment() -> dict[str, str]:
    """Return the caller's environment, extended so that this package can be imported."""
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}


def _describe_exit(status: int) -> str:
    return f"was terminated by {signal.Signals(-status).name}" if status < 0 else "stopped early"


def _decode_entry(entry: dict[str, Any]) -> Answer | Problem:
    notes = tuple(entry["notes"])
    if "kind" in entry:
        return Problem(entry["kind"], entry["message"], entry["name"], notes)
    origins = tuple(Origin(**origin) for origin in entry["origins"])
    return Answer(entry["name"], entry["source"], origins, notes)
