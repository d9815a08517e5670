"""What `course doctor` asks of the machine: each probe tries the thing and gives a Finding."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.course.finding import Finding

GIB = 1 << 30
MIB = 1 << 20
COURSE_RANKS = 8
"""The largest world that a notebook starts."""
FILES_PER_RANK = 3
FILES_OF_A_KERNEL = 100
RANK_BYTES = 60 * MIB
"""About what a forked rank adds: 58 MB were measured."""
SMALL_SHM_BYTES = 256 * MIB
SMALL_DISK_BYTES = 1 * GIB
SANDBOX_TIMEOUT_S = 20.0


def system() -> Finding:
    """See whether ranks can be forked here, which makes them start in milliseconds."""
    if sys.platform == "win32":
        return Finding("system", "missing", "native Windows", "Use WSL: ranks need Linux or macOS.")
    if sys.platform == "darwin":
        detail = "macOS: fork is unsafe here, so ranks are spawned, which takes seconds"
        return Finding("fork", "warning", detail, "Nothing to do: all works, and starts slower.")
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        return Finding("fork", "missing", f"a forked process ended with status {status}")
    return Finding("fork", "ok", "works: ranks start in milliseconds")


def cpus() -> Finding:
    """Count the CPUs that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if (count or 1) < 2:
        detail = "1: ranks take turns, so no speed-up or overlap can be seen"
        return Finding("CPUs", "warning", detail, "Two or more show what the notebooks measure.")
    return Finding("CPUs", "ok", f"{count}")


def memory() -> Finding:
    """Compare the memory that is free with what ranks take."""
    import psutil

    free = psutil.virtual_memory().available
    detail = f"{free / GIB:.1f} GiB free, about {max(0, free - GIB) // RANK_BYTES} ranks"
    if free < GIB + COURSE_RANKS * RANK_BYTES:
        return Finding("memory", "warning", detail, "Close other programs, or other kernels.")
    return Finding("memory", "ok", detail)


def shared_memory() -> Finding:
    """See how much shared memory is left for DataLoader workers and NCCL."""
    path = Path("/dev/shm")
    if not path.is_dir():
        return Finding(
            "shared memory", "ok", "this system keeps it elsewhere, without a limit here"
        )
    free = shutil.disk_usage(path).free
    detail = f"{free / MIB:.0f} MiB free in {path}"
    if free < SMALL_SHM_BYTES:
        advice = "In a container: start it with --shm-size=1g. DataLoader workers may die without."
        return Finding("shared memory", "warning", detail, advice)
    return Finding("shared memory", "ok", detail)


def open_files() -> Finding:
    """See how many ranks the limit on open files allows."""
    import resource

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return Finding("open files", "ok", "no limit")
    ranks = max(0, limit - FILES_OF_A_KERNEL) // FILES_PER_RANK
    detail = f"at most {limit}: enough for about {ranks} ranks"
    if ranks < 2 * COURSE_RANKS:
        advice = f"`ulimit -n {4096 if most < 0 else min(4096, most)}` before `make lab`"
        return Finding("open files", "warning", detail, advice)
    return Finding("open files", "ok", detail)


def temp_folder() -> Finding:
    """Write a file where ranks meet and keep what they exchange."""
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"x" * MIB)
            file.flush()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        detail = f"{folder} cannot be written: {error.strerror or error}"
        return Finding("temp folder", "missing", detail, "Free some space, or set TMPDIR.")
    detail = f"{free / GIB:.1f} GiB free in {folder}"
    if free < SMALL_DISK_BYTES:
        return Finding("temp folder", "warning", detail, "Free some space, or set TMPDIR.")
    return Finding("temp folder", "ok", detail)


def bubblewrap() -> Finding:
    """Run a program in a sandbox of its own, as a grader does with submissions."""
    advice = "Only grading other people's notebooks needs it: sudo apt-get install bubblewrap"
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return Finding("sandbox", "warning", "no bubblewrap (bwrap) here", advice)
    command = [bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SANDBOX_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("sandbox", "warning", f"{bwrap} does not run: {error}", advice)
    if done.returncode != 0:
        detail = f"{bwrap} may not make namespaces: {done.stderr.strip()}"
        advice = "Only grading needs it. Allow unprivileged user namespaces on this machine."
        return Finding("sandbox", "warning", detail, advice)
    return Finding("sandbox", "ok", f"{bwrap} ran a program in namespaces of its own")


def landlock() -> Finding:
    """Ask the kernel for its Landlock version: the second layer of the sandbox around a graded submission."""
    version = landlock_version()
    if version > 0:
        return Finding("Landlock", "ok", f"version {version}")
    detail = "this kernel has none, or has it switched off"
    advice = "Only grading uses it, as a second sandbox layer. On Linux: add landlock to the lsm= option."
    return Finding("Landlock", "warning", detail, advice)


def landlock_version() -> int:
    """Return the kernel's Landlock version, 0 if there is none.

    Asked by the system call landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION), see
    landlock(7): /sys/kernel/security is often not mounted, above all in containers.
    """
    if not sys.platform.startswith("linux"):
        return 0
    create_ruleset, version_flag = 444, 1
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(create_ruleset, None, ctypes.c_size_t(0), version_flag)))
