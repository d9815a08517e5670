"""Behind Landlock no namespace ends a rank server, so it must exit when its grader exits."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from helpers.grading.sandbox.cgroup import can_bound
from helpers.grading.sandbox.levels import NoSandbox, Plan, Sandbox, choose_level
from helpers.grading.sandbox.staged import StagedFiles
from tests.grading.hostile.attack import Attack, hand_in, text_of
from tests.grading.hostile.conftest import grader_of

SETTLE_S = 20.0


def test_stopped_server_exits_with_killed_grader(staged: StagedFiles) -> None:
    try:
        plan = Plan(choose_level("landlock", staged), staged)
    except NoSandbox as error:
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


NOTE = Path("/dev/shm", f"real-ranks-test-{os.getpid()}")
KEEPS = f"""
import os
def attack(rank, world_size, *inputs):
    os.makedirs("{NOTE}-deep/er", exist_ok=True)
    for path in ("{NOTE}", "{NOTE}-deep/er/file"):
        with open(path, "a", opener=lambda path, flags: os.open(path, flags, 0o666)) as file:
            file.write(repr(inputs))
    if rank == 0 and not os.path.lexists("{NOTE}-link"):
        os.symlink("what is hidden", "{NOTE}-link")
    try:
        os.umask(0)
    except OSError:
        return "kept"
"""
FINDS = """
import os
def attack(rank, world_size, *inputs):
    raise ValueError(f"found: {[n for n in os.listdir('/dev/shm') if n.startswith('real-ranks-test-')]}")
"""


@pytest.mark.extended
def test_clears_shared_memory_before_next_answer(staged: StagedFiles, tmp_path: Path) -> None:
    try:
        plan = Plan(choose_level("landlock", staged), staged)
    except NoSandbox as error:
        pytest.skip(str(error))
    others = [NOTE.with_name(f"{NOTE.name}-{word}") for word in ("before", "public", "open")]
    others[0].touch(0o600)
    keeps, finds = Attack("keeps", KEEPS), Attack("finds", FINDS)
    try:
        with others[2].open("w"):
            others[2].chmod(0o600)
            others[1].touch(0o644)
            records = hand_in(grader_of(plan), tmp_path, [keeps, finds])
            assert all(path.exists() for path in others)
    finally:
        for path in others:
            path.unlink(missing_ok=True)
    assert "kept" in text_of(records["keeps"])
    told = text_of(records["finds"])
    assert "found:" in told
    assert not any(f"{NOTE.name}{end}'" in told for end in ("", "-deep", "-link"))
    assert not list(NOTE.parent.glob(f"{NOTE.name}*"))


@pytest.fixture
def behind_landlock(staged: StagedFiles) -> Plan:
    try:
        return Plan(choose_level("landlock", staged), staged)
    except NoSandbox as error:
        pytest.skip(str(error))


OUTLIVES = f"""
import os, time
def attack(rank, world_size, *inputs):
    if rank == 0 and not os.fork():
        os.setsid()
        middle = os.getpid()  # not getppid(): once it has ended, that is the rank server
        if not os.fork():
            try:
                os.kill(middle, 9)
            except ProcessLookupError:
                pass
            os.execvp("sleep", ["sleep", "{os.getpid()}.5"])
    return "contained"
"""


@pytest.mark.extended
@pytest.mark.skipif(not can_bound("pids"), reason="no pids cgroup can be had here")
def test_sandbox_end_kills_detached_process(behind_landlock: Plan, tmp_path: Path) -> None:
    attack = Attack("outlives", OUTLIVES)
    record = hand_in(grader_of(behind_landlock), tmp_path, [attack])["outlives"]
    assert "contained" in text_of(record)
    commands = [p.info["cmdline"] for p in psutil.process_iter(["cmdline"])]
    assert ["sleep", f"{os.getpid()}.5"] not in commands
