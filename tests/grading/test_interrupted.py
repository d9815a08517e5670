"""Ctrl-C ends `course grade` at once, whichever process receives the signal, and the next run continues."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from helpers.grading.record import read_records
from tests.grading.notebooks import RIGHT, write_notebook

COURSE = [sys.executable, "-m", "helpers.course.cli"]
WAITS = "def ping_pong(*a):\n    import signal\n    signal.pause()  # {}\n"
START_S, GONE_S = 120.0, 60.0


def _to_command(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def _to_group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.extended
@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize("interrupt", [_to_command, _to_group], ids=["command", "terminal"])
def test_interrupt_ends_running_answers(
    tmp_path: Path, interrupt: Callable[[subprocess.Popen[str]], None]
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "a" / "02_blocking_p2p.ipynb", RIGHT)
    for number in range(31):
        path = folder / f"learner{number}" / "02_blocking_p2p.ipynb"
        write_notebook(path, WAITS.format(number))
    process = subprocess.Popen(
        [*COURSE, "grade", str(folder), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + START_S
        while not (out / "records").is_dir() and time.monotonic() < deadline:
            time.sleep(0.05)
        below = psutil.Process(process.pid).children(recursive=True)
        interrupt(process)
        said, _ = process.communicate(timeout=GONE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, said
    assert "Interrupted. Run the same command again" in said.splitlines()[-1]
    assert "will run again alone" not in said and "Traceback" not in said
    _, alive = psutil.wait_procs(below, timeout=GONE_S)
    assert below and not alive
    assert [record.learner for record in read_records(out)] == ["a"]
