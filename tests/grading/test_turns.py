"""One grader alone, or all of a batch next to each other."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

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
        assert time.monotonic() - began < 30  # it gives up its wait after a minute


def test_one_grader_needs_no_lock() -> None:
    with Turns().alone(), Turns().with_others():
        pass
