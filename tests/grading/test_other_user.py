"""Run the hostile tests as a user other than root, behind each kind of protection.

They run in a separate pytest, as a user without files, who lacks root's rights: separate users for sandboxes,
memory groups, reading any process.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from helpers.grading.sandbox.bubblewrap import python_folders

ROOT = Path(__file__).parents[2]
USER = 61_180 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""A user id below the range of sandboxes' users, unused on known systems, different in parallel tests."""
SETTLE_S = 5.0

ALL = (
    "hostile/test_hostile.py",
    "hostile/test_notebooks.py",
    "hostile/test_bypasses.py",
    "hostile/test_used_up.py",
    "test_fair.py",
)

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("bwrap"),
    reason="needs root, setpriv and bwrap, to become somebody else",
)


def as_other_user(folder: Path, level: str, file: str, *words: str) -> None:
    """Run a file of tests as another user, who must have no processes afterwards."""
    with tempfile.TemporaryDirectory(
        prefix="somebody-"
    ) as home:  # other users cannot enter pytest's folder
        os.chown(home, USER, USER)
        env = {
            "PATH": os.environ["PATH"],
            **dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), home),
            "PYTHONDONTWRITEBYTECODE": "1",
            "REAL_RANKS_TEST_LEVEL": level,
        }
        options = ["-q", "-p", "no:cacheprovider", f"--basetemp={home}/pytest", *words]
        command = [sys.executable, "-m", "pytest", *options, f"tests/grading/{file}"]
        with (folder / "said").open("w+") as said:
            process = subprocess.Popen(
                [*_become(), *command], cwd=ROOT, env=env, stdout=said, stderr=said
            )
            try:
                code = process.wait(1500)
            finally:
                process.kill()
                process.wait()
            said.seek(0)
            assert code == 0, said.read()[-6000:]
    deadline = time.monotonic() + SETTLE_S
    while left := [p for p in psutil.process_iter() if _is_theirs(p)]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def _become() -> list[str]:
    """Return a command prefix that runs a program as USER, even if Python is in a folder only for root."""
    needed = [Path(folder) for folder in (*python_folders(), ROOT)]
    closed = {p for each in needed for p in each.parents if not p.stat().st_mode & stat.S_IXOTH}
    become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    if not closed:
        return become
    shown: list[str] = []
    for each in needed:
        hidden = [p for p in reversed(each.parents) if closed & {p, *p.parents}]
        for p in hidden:
            shown += ["--perms", "0755", "--tmpfs" if p in closed else "--dir", str(p)]
        shown += ["--ro-bind", str(each), str(each)] if hidden else []
    return ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", *shown, *become]


def _is_theirs(process: psutil.Process) -> bool:
    try:
        return bool(process.uids().real == USER and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_another_user_detects_deadlock(tmp_path: Path, level: str) -> None:
    as_other_user(tmp_path, level, "test_grader.py", "-k", "deadlock")


@pytest.mark.soak
@pytest.mark.timeout(1600)
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("file", ALL)
def test_grades_as_another_user(tmp_path: Path, file: str, level: str) -> None:
    as_other_user(tmp_path, level, file, "-m", "soak or not soak")
