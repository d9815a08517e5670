"""One grader alone, or all of a batch next to each other."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.grading.sandbox import turns as turns_module
from helpers.grading.sandbox.turns import Turns

OTHER = """
import sys, time
from helpers.grading.sandbox.turns import Turns
with Turns(sys.argv[1]).with_others():
    print("in", flush=True)
    sys.stdin.readline()
"""


def test_alone_waits_for_others_and_may_ask_again_within(tmp_path: Path) -> None:
    turns = Turns(str(tmp_path / "turns"))
    command = [sys.executable, "-c", OTHER, turns.file]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        try:
            assert other.stdout.readline() == "in\n"
            with turns.with_others():  # next to the other one: no wait
                assert other.poll() is None
            other.stdin.write("\n")
            with turns.alone(), turns.with_others():
                assert other.wait(10) == 0  # it had left before this one came
        finally:
            other.kill()


def test_a_grader_that_dies_gives_its_turn_back(tmp_path: Path) -> None:
    turns = Turns(str(tmp_path / "turns"))
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, turns.file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"in\n"
        other.kill()
    began = time.monotonic()
    with turns.alone():
        assert time.monotonic() - began < 60  # it gives up its wait after five minutes


def test_a_child_that_was_forked_within_a_turn_does_not_keep_it(tmp_path: Path) -> None:
    """A judge is forked while its grader runs next to others, and lives on when the turn is over."""
    turns = Turns(str(tmp_path / "turns"))
    with turns.with_others():
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
    try:
        waiting = "import sys; from helpers.grading.sandbox.turns import Turns\n"
        waiting += "with Turns(sys.argv[1]).alone() as is_alone: print(is_alone)"
        done = subprocess.run(
            [sys.executable, "-c", waiting, turns.file], capture_output=True, text=True, timeout=60
        )
        assert done.stdout == "True\n", done.stderr
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


ALWAYS = """
import sys, time
from helpers.grading.sandbox.turns import Turns
print("in", flush=True)
while True:
    with Turns(sys.argv[1]).with_others():
        time.sleep(0.3)
"""


def test_others_that_come_and_go_do_not_keep_one_from_being_alone(tmp_path: Path) -> None:
    """Three of them, one of which is always in: a lock without a gate is never free."""
    turns = Turns(str(tmp_path / "turns"))
    command = [sys.executable, "-c", ALWAYS, turns.file]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    try:
        for other in others:
            assert other.stdout is not None and other.stdout.readline() == b"in\n"
        for _ in range(5):
            with turns.alone() as is_alone:
                assert is_alone
            with turns.with_others():  # nor do those who were alone keep the others out
                pass
    finally:
        for other in others:
            other.kill()
            other.communicate()


def test_one_who_waits_too_long_is_told_that_it_is_not_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(turns_module._PATIENCE_S, fcntl.LOCK_EX, 0.1)
    turns = Turns(str(tmp_path / "turns"))
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, turns.file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == b"in\n"
            with turns.alone() as is_alone, turns.with_others():
                assert not is_alone
        finally:
            other.kill()


def test_one_grader_needs_no_lock() -> None:
    with Turns().alone(), Turns().with_others():
        pass
