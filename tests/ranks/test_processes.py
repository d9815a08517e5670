"""A process that runs away by forking is killed together with its process tree."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from helpers.ranks.processes import adopt_orphans, children_of, end_process_tree, process_tree

SOON_S = 10.0


def _runs_away() -> None:
    """Change the process all the time: fork, then exit."""
    while os.fork() == 0:
        pass


def _runs_away_in_groups_of_its_own() -> None:
    while os.fork() == 0:
        os.setsid()


def _waits() -> None:
    for _ in range(20):
        if os.fork() == 0:
            os.setsid()
            signal.pause()
    signal.pause()


@pytest.mark.parametrize("act", [_waits, _runs_away, _runs_away_in_groups_of_its_own])
def test_ends_escaped_descendant_processes(act: Callable[[], None]) -> None:
    first = os.fork()
    if first == 0:
        try:
            os.setsid()
            adopt_orphans()
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel waits for its children
            if os.fork() == 0:
                os.setsid()
                act()
                os._exit(0)
            while True:
                signal.pause()
        finally:
            os._exit(0)
    deadline = time.monotonic() + SOON_S
    while not list(children_of(first)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(list(process_tree(first))) > 1
    ours = set(children_of(1))
    end_process_tree(first)
    assert os.waitpid(first, 0)[1] == signal.SIGKILL
    time.sleep(0.3)
    mine = _called_like_us(set(children_of(1)) - ours)
    for pid in mine:
        os.kill(pid, signal.SIGKILL)
    assert not mine


def _called_like_us(pids: set[int]) -> list[int]:
    """Return the processes that run the same program as this one, because they come from this test."""
    return [pid for pid in pids if _command(pid) == _command(os.getpid())]


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""
