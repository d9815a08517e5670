"""Test that either one grader runs alone, or all graders of a batch run at the same time."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.grading.sandbox import batch_lock
from helpers.grading.sandbox.batch_lock import BatchLock

OTHER = """
import sys, time
from helpers.grading.sandbox.batch_lock import BatchLock
with BatchLock(sys.argv[1]).hold_shared():
    print("in", flush=True)
    sys.stdin.readline()
"""


def test_exclusive_lock_waits_and_nests(tmp_path: Path) -> None:
    lock = BatchLock(str(tmp_path / "turns"))
    command = [sys.executable, "-c", OTHER, lock.file]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        try:
            assert other.stdout.readline() == "in\n"
            with lock.hold_shared():  # shared with the other grader, without waiting
                assert other.poll() is None
            other.stdin.write("\n")
            with lock.hold_exclusive(), lock.hold_shared():
                assert other.wait(10) == 0  # the other process had released its lock before
        finally:
            other.kill()


def test_dead_grader_releases_lock(tmp_path: Path) -> None:
    lock = BatchLock(str(tmp_path / "turns"))
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, lock.file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"in\n"
        other.kill()
    began = time.monotonic()
    with lock.hold_exclusive():
        assert time.monotonic() - began < 60  # the wait would give up after five minutes


def test_forked_child_never_keeps_lock(tmp_path: Path) -> None:
    """A judge is forked while its grader holds the shared lock, and outlives that turn."""
    lock = BatchLock(str(tmp_path / "turns"))
    with lock.hold_shared():
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
    try:
        waiting = "import sys; from helpers.grading.sandbox.batch_lock import BatchLock\n"
        waiting += "with BatchLock(sys.argv[1]).hold_exclusive() as is_alone: print(is_alone)"
        done = subprocess.run(
            [sys.executable, "-c", waiting, lock.file], capture_output=True, text=True, timeout=60
        )
        assert done.stdout == "True\n", done.stderr
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


ALWAYS = """
import sys, time
from helpers.grading.sandbox.batch_lock import BatchLock
print("in", flush=True)
while True:
    with BatchLock(sys.argv[1]).hold_shared():
        time.sleep(0.3)
"""


def test_shared_locks_never_starve_exclusive_lock(tmp_path: Path) -> None:
    """One of three shared holders is always active, so a lock without a gate would never be free."""
    lock = BatchLock(str(tmp_path / "turns"))
    command = [sys.executable, "-c", ALWAYS, lock.file]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    try:
        for other in others:
            assert other.stdout is not None and other.stdout.readline() == b"in\n"
        for _ in range(5):
            with lock.hold_exclusive() as is_alone:
                assert is_alone
            with lock.hold_shared():  # an exclusive holder does not keep shared ones out either
                pass
    finally:
        for other in others:
            other.kill()
            other.communicate()


def test_timed_out_exclusive_lock_reports_sharing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(batch_lock._PATIENCE_S, fcntl.LOCK_EX, 0.1)
    lock = BatchLock(str(tmp_path / "turns"))
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, lock.file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == b"in\n"
            with lock.hold_exclusive() as is_alone, lock.hold_shared():
                assert not is_alone
        finally:
            other.kill()


def test_single_grader_needs_no_lock() -> None:
    with BatchLock().hold_exclusive(), BatchLock().hold_shared():
        pass
