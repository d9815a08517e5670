"""What an answer takes of the kernel's own memory is counted and bounded, too."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

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


@pytest.mark.skipif(not can_bound(), reason="no memory cgroup can be had here")
def test_a_group_ends_what_takes_too_much_and_goes() -> None:
    program = "input(); kept = bytearray(1 << 29); print(len(kept))"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    group = put_into_group(child.pid, 1 << 27)
    assert group is not None and not group.killed
    child.communicate(b"\n", timeout=60)
    assert child.returncode < 0 and group.killed
    group.close()
    assert not group.folder.exists()


@pytest.mark.skipif(not can_bound(), reason="no memory cgroup can be had here")
def test_memory_that_no_process_shows_is_bounded(plan: Plan, tmp_path: Path) -> None:
    with grader_of(replace(plan, limits=SMALL)) as grader:
        record = graded(grader, tmp_path, AREAS)
    found = next(each for each in record.exercises if each.name == "broadcast_from")
    assert (found.outcome, found.points) == ("out of memory", 0.0), found
    assert "with the kernel's memory for them" in found.message
