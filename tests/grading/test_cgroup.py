"""What an answer takes of the kernel's own memory is counted and bounded, too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from helpers.grading.sandbox.cgroup import can_bound, put_into_group
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.walls import Plan
from tests.grading.hostile.attack import graded
from tests.grading.hostile.conftest import grader_of

SMALL = replace(Limits(), world_bytes=300 << 20, disk_bytes=32 << 20)


AREAS = """
import mmap, os, signal, time

def broadcast_from(rank, world_size, x, shape, dtype, src):
    for _ in range(70):
        if os.fork() == 0:
            kept = []
            for k in range(32_000):
                kept.append(mmap.mmap(-1, 4096, prot=(mmap.PROT_READ, mmap.PROT_WRITE)[k % 2]))
            signal.pause()
    time.sleep(60)
"""
"""Takes memory that no process shows as its own: descriptors of memory areas, in many children."""


@pytest.mark.skipif(not can_bound("memory"), reason="no memory cgroup can be had here")
def test_a_group_ends_what_takes_too_much_and_goes() -> None:
    program = "input(); kept = bytearray(1 << 29); print(len(kept))"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    group = put_into_group(child.pid, 1 << 27)
    assert group is not None and not group.killed
    child.communicate(b"\n", timeout=60)
    assert child.returncode < 0 and group.killed
    group.close()
    assert not any(folder.exists() for folder in group.folders.values())


@pytest.mark.skipif(not can_bound("memory"), reason="no memory cgroup can be had here")
def test_memory_that_no_process_shows_is_bounded(plan: Plan, tmp_path: Path) -> None:
    with grader_of(replace(plan, limits=SMALL)) as grader:
        record = graded(grader, tmp_path, AREAS)
    found = next(each for each in record.exercises if each.name == "broadcast_from")
    assert (found.outcome, found.points) == ("out of memory", 0.0), found
    assert "with the kernel's memory for them" in found.message


SPIN = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if not os.fork():
        os.setsid()
        while True:
            pass
began, count = time.process_time(), 0
print("ready", flush=True)
while True:
    count += 1
"""


@pytest.mark.skipif(not can_bound("cpu"), reason="no cpu cgroup can be had here")
def test_sessions_that_spin_get_no_more_than_one_share() -> None:
    """Sixty sessions in one group next to one process in another, all on one core."""
    core = {min(os.sched_getaffinity(0))}
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", SPIN, count],
            stdout=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, core),
            start_new_session=True,
        )
        for count in ("0", "60")
    ]
    groups = []
    try:
        groups = [put_into_group(program.pid, 1 << 30) for program in programs]
        # those that spin were forked before the group or after it: put the rest there, too
        for program in programs:
            assert program.stdout is not None and program.stdout.readline() == b"ready\n"
        family = psutil.Process(programs[1].pid).children(recursive=True)
        assert groups[1] is not None
        for child in family:
            (groups[1].folders["cpu"] / "cgroup.procs").write_text(str(child.pid))
        before = psutil.Process(programs[0].pid).cpu_times().user
        time.sleep(2.0)
        got = psutil.Process(programs[0].pid).cpu_times().user - before
        # half a core is its share; among 62 equals it would have a thirtieth of a second
        assert got > 0.3, got
    finally:
        for process in psutil.Process().children(recursive=True):
            if process.pid in {p.pid for p in programs} or process.ppid() in {
                p.pid for p in programs
            }:
                process.kill()
        for program in programs:
            program.wait(30)
        for group in filter(None, groups):
            group.close()
