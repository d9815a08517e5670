"""Behind Landlock a rank server has no namespace that ends it: it must end with its grader by itself."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from helpers.grading.sandbox.staged import Staged
from helpers.grading.sandbox.walls import NoWalls, Plan, Sandbox, choose

SETTLE_S = 20.0


def test_a_stopped_server_ends_with_a_grader_that_is_killed(staged: Staged) -> None:
    try:
        plan = Plan(choose("landlock", staged), staged)
    except NoWalls as error:
        pytest.skip(str(error))
    read, write = os.pipe()
    grader = os.fork()
    if grader == 0:
        try:
            sandbox = Sandbox(plan)
            sandbox.connection.wait_until_ready()
            os.kill(sandbox.connection.pid, signal.SIGSTOP)
            os.write(write, str(sandbox.connection.pid).encode())
            signal.pause()
        finally:
            os._exit(1)
    os.close(write)
    server = int(os.read(read, 20) or b"0")
    os.close(read)
    os.kill(grader, signal.SIGKILL)
    os.waitpid(grader, 0)
    assert server
    deadline = time.monotonic() + SETTLE_S
    while psutil.pid_exists(server) and psutil.Process(server).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            os.kill(server, signal.SIGKILL)
            pytest.fail("the stopped server is still there")
        time.sleep(0.02)
