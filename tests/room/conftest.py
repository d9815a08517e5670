"""Shared code for tests of the room: a board in a separate process, and a board in this process."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pytest

from helpers.course.workspace import find_workspace

DEADLINE_S = 60


@dataclass(frozen=True)
class Served:
    """A running board. key: the teacher's key."""

    url: str
    code: str
    key: str
    process: subprocess.Popen[str]

    @property
    def enter(self) -> str:
        return f"{self.url}/enter?key={self.key}"

    def kill(self) -> None:
        """Kill the board, like a power cut."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE_S)


@contextmanager
def serving(file: Path, python: str = sys.executable, port: int = 0) -> Iterator[Served]:
    """Serve a file's room with the real command."""
    words = ["room", "serve", "--file", str(file), "--port", str(port)]
    process = subprocess.Popen(
        [python, "-m", "helpers.course.cli", *words],
        cwd=find_workspace().root,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    timer = Timer(DEADLINE_S, process.kill)
    timer.start()
    try:
        said = "".join(process.stdout.readline() for _ in range(4))
        url, code = re.findall(r'join\("(.*?)", "(.*?)"\)', said)[0]
        yield Served(url, code, re.findall(r"key=(\w+)", said)[0], process)
    finally:
        timer.cancel()
        process.terminate()
        with closing(process.stdout):
            process.wait(DEADLINE_S)


@pytest.fixture
def served(tmp_path: Path, forking_python: str) -> Iterator[Served]:
    with serving(tmp_path / "room.sqlite3", forking_python) as room:
        yield room
