"""What a rank runs around an answer of notebook 00: a program that really fails."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any


def run_and_ask(
    answer: Callable[[int, str, bool], Any],
    rank: int,
    world_size: int,
    program: str,
    patience: float,
) -> dict[str, Any]:
    """Run a program until it ends or its time is up; return its name by `answer`, and what that was given."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # a crash here leaves no core file behind
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},  # newer Pythons may color their tracebacks
    )
    try:
        _, stderr = process.communicate(timeout=patience)
        timed_out = False
    except subprocess.TimeoutExpired:
        process.kill()
        _, stderr = process.communicate()
        timed_out = True
    ending = (stderr.splitlines() or [""])[-1]
    # How much a program prints before its time is up depends on the machine's load.
    printed = "" if timed_out else f"last line of stderr={ending!r}, "
    given = f"returncode={process.returncode}, {printed}timed_out={timed_out}"
    return {"name": answer(process.returncode, stderr, timed_out), "given": given}
