"""The output of ranks in a terminal: whole lines with their rank, and a line about where they are."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.scripts.terminal import RankOutput


def printed(*pieces: tuple[int, bytes]) -> str:
    stream = io.StringIO()
    output = RankOutput(stream)
    for rank, data in pieces:
        output.add(rank, data)
    output.finish()
    return stream.getvalue()


def test_prints_only_whole_lines() -> None:
    assert printed((0, b"one "), (1, b"two\n"), (0, b"line\nand")) == (
        "[rank 1] two\n[rank 0] one line\n[rank 0] and\n"
    )


def test_joins_split_characters() -> None:
    first, rest = "é\n".encode()[:1], "é\n".encode()[1:]
    assert printed((0, first), (0, rest)) == "[rank 0] é\n"


def test_prints_final_progress_bar_state() -> None:
    bar = [b"\r 10%", b"\r 50%", b"\r100%\n"]
    assert printed(*[(0, piece) for piece in bar]) == "[rank 0] 100%\n"
    assert printed((0, b"\r 10%"), (0, b"\r 50%")) == "[rank 0]  50%\n"


def test_converts_windows_line_ends() -> None:
    assert printed((0, b"a\r\nb\r\n")) == "[rank 0] a\n[rank 0] b\n"


def test_prints_endless_line() -> None:
    assert len(printed((0, b"x" * 200_001), (0, b"x"))) > 200_000


@pytest.mark.extended
def test_locates_quiet_ranks(tmp_path: Path) -> None:
    """Only on a terminal, so a pseudo-terminal reads the command's output."""
    (tmp_path / "train.py").write_text("import time\ntime.sleep(60)\n")
    own, theirs = pty.openpty()
    program = (
        "import helpers.scripts.terminal as terminal; terminal.QUIET_S = 0.1\n"
        "from helpers.course.cli import main; main(['run', 'train.py'])"
    )
    job = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen, deadline = "", time.monotonic() + 60
    located = (
        "s: ranks 0, 1 in their own code at train.py, line 2"  # at first each may still import
    )
    while located not in seen and time.monotonic() < deadline:
        if select.select([own], [], [], 1.0)[0]:
            seen += os.read(own, 4096).decode()
    job.terminate()
    code = job.wait(60)
    os.close(own)
    assert located in seen
    assert code == 143
