"""Processes in which an import must start nothing: plain Python, multiprocessing's children, workers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from helpers.course.workspace import find_workspace

DEADLINE_S = 100

LOOK = """\
import os, tempfile
import psutil

def look():
    children = [p.name() for p in psutil.Process().children(recursive=True)]
    folders = [f for f in os.listdir(tempfile.gettempdir()) if f.startswith("real-ranks")]
    return len(children), len(folders)
"""

PLAIN = """
import helpers
from helpers import launch, check, predict
print(*look())
"""

SPAWN = """
import helpers
from helpers import launch

def child(index):
    print("child", *look(), flush=True)
    try:
        launch(print, 2)
    except helpers.LaunchError as error:
        print("refused:", error, flush=True)
    print("child", *look(), flush=True)

if __name__ == "__main__":
    import torch.multiprocessing as mp
    mp.spawn(child, nprocs=1)
"""

UNGUARDED = """
import torch.multiprocessing as mp
from helpers import launch

def nothing(*_):
    pass

launch(nothing, 2)  # without the guard: every child does it again, when it imports this file
if __name__ == "__main__":
    mp.start_processes(nothing, nprocs=1, start_method="spawn")
"""

TORCHRUN = """
import sys
import helpers
from helpers import launch

try:
    launch(print, 2)
except helpers.LaunchError as error:
    said = str(error)
with open(f"{sys.argv[1]}-{os.environ['RANK']}", "w") as file:
    print(*look(), said, file=file)
"""


def run(
    script: str,
    tmp_path: Path,
    *words: str,
    after: tuple[str, ...] = (),
    fails: bool = False,
) -> str:
    """Run a script with a private temp directory, which must be empty afterwards."""
    path = tmp_path / "script.py"
    path.write_text(LOOK + script)
    with tempfile.TemporaryDirectory(prefix="rr-", dir="/tmp") as temp:
        done = subprocess.run(
            [sys.executable, *words, str(path), *after],
            env=os.environ | {"TMPDIR": temp, "PYTHONPATH": str(find_workspace().root)},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        left = [name for name in os.listdir(temp) if name.startswith("real-ranks")]
        assert not left
    return done.stdout + done.stderr


@pytest.mark.extended
def test_plain_import_starts_no_processes(tmp_path: Path) -> None:
    assert run(PLAIN, tmp_path) == "0 0\n"


@pytest.mark.extended
def test_spawned_child_starts_nothing_on_import(tmp_path: Path) -> None:
    lines = run(SPAWN, tmp_path).splitlines()
    assert (lines[0], lines[-1]) == ("child 0 0", "child 0 0")
    assert "child of multiprocessing" in lines[1] and "if __name__ == '__main__'" in lines[1]


@pytest.mark.extended
def test_unguarded_script_error_suggests_main_guard(tmp_path: Path) -> None:
    said = run(UNGUARDED, tmp_path, fails=True)
    assert "LaunchError: launch() was called in a child of multiprocessing" in said
    assert "Put the call under `if __name__ == '__main__':`" in said


@pytest.mark.extended
def test_torchrun_worker_rejects_launch(tmp_path: Path) -> None:
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    run(TORCHRUN, tmp_path, *words, after=(str(tmp_path / "said"),))
    for rank in (0, 1):
        said = (tmp_path / f"said-{rank}").read_text()
        assert said.startswith("0 0 launch() was called in a worker of torchrun"), said
