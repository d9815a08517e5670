"""An answer's use of kernel memory is also counted and limited."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from helpers.grading.sandbox import cgroup
from helpers.grading.sandbox.cgroup import can_bound, put_into_group
from helpers.grading.sandbox.levels import Plan
from helpers.grading.sandbox.limits import Limits
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
"""An answer that uses memory not attributed to a process: descriptors of memory areas, in many children."""


@pytest.mark.skipif(not can_bound("memory"), reason="no memory cgroup can be had here")
def test_kills_greedy_processes_and_removes_group() -> None:
    program = "input(); kept = bytearray(1 << 29); print(len(kept))"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    group = put_into_group(child.pid, 1 << 27, 50)
    assert group is not None and not group.killed
    child.communicate(b"\n", timeout=60)
    assert child.returncode < 0 and group.killed
    group.close()
    assert not any(folder.exists() for folder in group.folders.values())


@pytest.mark.soak
@pytest.mark.skipif(not can_bound("memory"), reason="no memory cgroup can be had here")
def test_cgroup_limits_hidden_kernel_memory(plan: Plan, tmp_path: Path) -> None:
    record = graded(grader_of(replace(plan, limits=SMALL)), tmp_path, AREAS)
    found = next(each for each in record.exercises if each.name == "broadcast_from")
    assert (found.outcome, found.points) == ("too much memory", 0.0), found
    assert "with the kernel's memory for them" in found.message


FORKS = """
import os, signal
for number in range(1000):
    try:
        pid = os.fork()
    except OSError:
        break
    if not pid:
        if number % 2:
            os.setsid()
            if os.fork():
                os._exit(0)  # an orphan in a session of its own
        signal.pause()
print(number, flush=True)
"""


@pytest.mark.skipif(not can_bound("pids"), reason="no pids cgroup can be had here")
def test_cgroup_bounds_and_kills_root_processes() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", f"input()\n{FORKS}\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert program.stdin is not None and program.stdout is not None
    group = put_into_group(program.pid, 1 << 30, 20)
    assert group is not None
    try:
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert int(program.stdout.readline()) < 20 + cgroup._EXTRA_PROCESSES
        inside = (group.folders["pids"] / "cgroup.procs").read_text().split()
        assert len(inside) >= 20
    finally:
        group.end()
        program.communicate(timeout=30)
    assert (group.folders["pids"] / "cgroup.procs").read_text() == ""
    group.close()
    assert not any(folder.exists() for folder in group.folders.values())


KILLED = """
import os, signal
from helpers.grading.sandbox.cgroup import put_into_group
group = put_into_group(os.getpid(), 1 << 40, 10_000)
print(*map(str, group.folders.values()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not can_bound("pids"), reason="no pids cgroup can be had here")
def test_next_grader_removes_orphaned_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    said = subprocess.run(
        [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False
    ).stdout
    left = [Path(word) for word in said.split()]
    assert left and all(folder.exists() for folder in left)
    ours = left[0].with_name(f"real-ranks-{os.getpid()}-test")
    ours.mkdir()
    try:
        for folder in left:
            cgroup._remove_stale(folder.parent)
        assert all(folder.exists() for folder in left)  # too new: the owner may be hidden
        monkeypatch.setattr(cgroup, "_STALE_S", -1.0)
        for folder in left:
            cgroup._remove_stale(folder.parent)
        assert not any(folder.exists() for folder in left)
        assert ours.exists()
    finally:
        ours.rmdir()


VERSION_2 = """
import subprocess, sys
from pathlib import Path
from helpers.grading.sandbox.cgroup import ProcessGroups
folder = Path(sys.argv[1], "real-ranks-test")
folder.mkdir()
program = subprocess.Popen(["sh", "-c", "read line; setsid sleep 100 & sleep 100"], stdin=subprocess.PIPE)
(folder / "cgroup.procs").write_text(str(program.pid))
program.stdin.write(b"\\n")
program.stdin.flush()
while len((folder / "cgroup.procs").read_text().split()) < 3:
    pass
group = ProcessGroups({"pids": folder})
group.end()
program.wait(30)
group.close()
assert not folder.exists()
print("ended")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
def test_cgroup_v2_kills_all_processes_together(tmp_path: Path) -> None:
    """Use a separate hierarchy with real kernel files, whatever version this machine uses."""
    mounted = [
        "unshare",
        "-m",
        "sh",
        "-c",
        'mount -t cgroup2 none "$1" || exit 77; exec "$2" -c "$3" "$1"',
    ]
    run = subprocess.run(
        [*mounted, "sh", str(tmp_path), sys.executable, VERSION_2],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if run.returncode == 77 or "unshare" in run.stderr:
        pytest.skip(f"no cgroup2 file system can be mounted here: {run.stderr}")
    assert run.stdout == "ended\n", run.stderr


def test_writes_limits_to_cgroup_v2_files(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.weight"):
        (tmp_path / name).touch()
    for kind in cgroup.KINDS:
        cgroup._set_limit(tmp_path, kind, 700)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {
        "memory.max": "700",
        "memory.swap.max": "0",
        "pids.max": "700",
        "cpu.weight": "",
    }
    (tmp_path / "empty").mkdir()
    for kind in cgroup.KINDS:
        with pytest.raises(OSError, match="controller"):
            cgroup._set_limit(tmp_path / "empty", kind, 700)


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


@pytest.mark.soak  # other programs on the machine may distort the shares
@pytest.mark.skipif(not can_bound("cpu"), reason="no cpu cgroup can be had here")
def test_spinning_sessions_get_one_cpu_share() -> None:
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
        groups = [put_into_group(program.pid, 1 << 30, 500) for program in programs]
        # spinning processes may have been forked before the group was made, so move all of them
        for program in programs:
            assert program.stdout is not None and program.stdout.readline() == b"ready\n"
        families = [psutil.Process(program.pid).children(recursive=True) for program in programs]
        assert groups[1] is not None
        for child in families[1]:
            (groups[1].folders["cpu"] / "cgroup.procs").write_text(str(child.pid))
        everybody = [
            [psutil.Process(program.pid), *family]
            for program, family in zip(programs, families, strict=True)
        ]
        before = [sum(each.cpu_times().user for each in family) for family in everybody]
        time.sleep(2.0)
        after = [sum(each.cpu_times().user for each in family) for family in everybody]
        alone, many = (now - then for now, then in zip(after, before, strict=True))
        # the fair share is half of the total; among 62 equal sessions it would be about a sixtieth
        assert alone > 0.25 * (alone + many), (alone, many)
    finally:
        for group in filter(None, groups):
            group.end()
        for program in programs:
            program.kill()
            program.communicate(timeout=60)
        for group in filter(None, groups):
            group.close()
