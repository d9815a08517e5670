"""Programs of a rank that use up, and hold, resources that the kernel counts for all processes of a user.

Each takes as much as it can get, and returns the amount and the kernel's error number for more. Behind
Landlock, and for a grader who is not root, all sandboxes belong to the same user.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

MOST = 300_000
"""Number of acquired resources from which they count as unlimited."""


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def pending_signals() -> tuple[int, int]:
    """Queue real-time signals for a process that blocks them in all of its threads."""
    said, told = os.pipe()
    if os.fork() == 0:
        queue, number = libc().sigqueue, 0
        signal.pthread_sigmask(signal.SIG_BLOCK, range(40, 60))
        for count in range(MOST):
            if queue(os.getpid(), 40, ctypes.c_long(count)):
                number = ctypes.get_errno()
                break
        os.write(told, f"{count} {number}".encode())
        signal.pause()
    got, refused = os.read(said, 100).split()
    return int(got), int(refused)


def timers() -> tuple[int, int]:
    """Create POSIX timers, each of which reserves a pending signal."""
    create, kept = libc().timer_create, ctypes.c_void_p()
    for count in range(MOST):
        if create(1, None, ctypes.byref(kept)):
            return count, ctypes.get_errno()
    return MOST, 0


def inotify_instances() -> tuple[int, int]:
    init = libc().inotify_init
    for count in range(MOST):
        if init() < 0:
            return count, ctypes.get_errno()
    return MOST, 0


def inotify_watches() -> tuple[int, int]:
    """Add a watch for each of Python's files and folders."""
    calls = libc()
    fd, count = calls.inotify_init(), 0
    for folder in {sys.prefix, sys.base_prefix, "/usr"}:
        for path in Path(folder).rglob("*"):
            if calls.inotify_add_watch(fd, str(path).encode(), 2) < 0:
                if ctypes.get_errno() == errno.ENOSPC:
                    return count, errno.ENOSPC
            else:
                count += 1
    return count, 0


def epoll_watches() -> tuple[int, int]:
    """Add the allowed number of watches in each of a hundred processes; the kernel keeps 150 bytes each."""
    import select

    said, told = os.pipe()
    children = 100
    for _ in range(children):
        if os.fork() == 0:
            count = number = 0
            with_room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100
            polls = [select.epoll() for _ in range(with_room // 2)]
            ends = [os.eventfd(0) for _ in range(with_room // 2)]
            try:
                for poll in polls:
                    for end in ends:
                        poll.register(end)
                        count += 1
            except OSError as error:
                number = error.errno or 0
            os.write(told, f"{count:8}{number:8}".encode())
            signal.pause()
    found = [os.read(said, 16).split() for _ in range(children)]
    return sum(int(count) for count, _ in found), max(int(number) for _, number in found)


def descriptors_in_flight() -> tuple[int, int]:
    """Send descriptors over sockets without receiving them, so that no process has them open."""
    pairs, file = [], os.open("/dev/null", os.O_RDONLY)
    try:
        while len(pairs) * 100 < MOST:
            pairs.append(socket.socketpair(socket.AF_UNIX))
            message = array.array("i", [file] * 100)
            pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, message)])
    except OSError as error:
        return 100 * (len(pairs) - 1), error.errno or 0
    return MOST, 0


def pages_of_pipes() -> tuple[int, int]:
    """Create pipes of the maximum size. After many, a user's new pipes have only a page or two."""
    kept = []
    try:
        while True:
            ends = os.pipe()
            kept.append(ends)
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 1 << 20)
            os.set_blocking(ends[1], False)
            os.write(ends[1], bytes(1 << 20))
    except OSError as error:
        return len(kept), error.errno or 0


def locks_of_files() -> tuple[int, int]:
    """Take locks of both kinds on every file that is also read by the grader and other ranks."""
    count = number = 0
    for folder in (sys.prefix, sys.path[0], "/usr/lib"):
        for path in Path(folder).rglob("*.py"):
            try:
                file = os.open(path, os.O_RDONLY)
                fcntl.flock(file, fcntl.LOCK_EX)
                fcntl.lockf(file, fcntl.LOCK_SH)
                count += 1
            except OSError as error:
                number = error.errno or 0
                if number == errno.EMFILE:
                    return count, number
    return count, number


def leases_of_files() -> tuple[int, int]:
    """Take leases, because opening a file with another process's lease blocks for up to 45 seconds."""
    count = number = 0
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    for folder in (sys.path[0], sys.prefix):
        for path in Path(folder).rglob("*.py"):
            try:
                file = os.open(path, os.O_RDONLY)
            except OSError as error:
                return count, error.errno or 0
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                count += 1
            except OSError as error:
                number = error.errno or 0
                os.close(file)
    return count, number


def processes() -> tuple[int, int]:
    for count in range(MOST):
        try:
            if os.fork() == 0:
                signal.pause()
        except OSError as error:
            return count, error.errno or 0
    return MOST, 0


def priorities() -> tuple[int, int]:
    """Set the lowest priority, and a single core, for every reachable process."""
    calls, count, number = libc(), 0, 0
    core, none = ctypes.c_ulong(1), ctypes.c_int(0)
    sched_idle, of_a_user = 5, 2
    for path in Path("/proc").glob("[0-9]*"):
        pid = int(path.name)
        if pid == os.getpid():
            continue
        attempts: list[Callable[[], int]] = [
            lambda pid=pid: calls.sched_setaffinity(pid, 8, ctypes.byref(core)),  # type: ignore[misc]
            lambda pid=pid: calls.sched_setscheduler(pid, sched_idle, ctypes.byref(none)),  # type: ignore[misc]
        ]
        for attempt in attempts:
            if attempt() == 0:
                count += 1
            else:
                number = ctypes.get_errno()
    count += calls.setpriority(of_a_user, os.getuid(), 19) == 0
    return count, number


def keys_and_queues() -> tuple[int, int]:
    calls = libc()
    for count in range(MOST):
        key = calls.syscall(248, b"user", b"%d" % count, b"x", 1, -4) >= 0  # add_key on x86-64
        queue = ctypes.CDLL("librt.so.1", use_errno=True).mq_open(b"/x%d" % count, 66, 384, None)
        if not key and queue < 0:
            return count, ctypes.get_errno()
    return MOST, 0


USES_UP: dict[Callable[[], tuple[int, int]], set[int]] = {
    pending_signals: {errno.EAGAIN},
    timers: {errno.EAGAIN},
    inotify_instances: {errno.EMFILE},
    inotify_watches: {errno.ENOSPC, 0},
    epoll_watches: {errno.ENOSPC, 0},
    descriptors_in_flight: {errno.ETOOMANYREFS, errno.EMFILE},
    pages_of_pipes: {errno.EPERM, errno.EMFILE},
    locks_of_files: {errno.EMFILE},
    leases_of_files: {errno.EPERM},
    processes: {errno.EAGAIN},
    priorities: {errno.EPERM, errno.ESRCH, 0},
    keys_and_queues: {errno.EPERM},
}
"""The programs with the kernel's error numbers at the limit; 0 if all requests may be granted."""
NOTHING = {leases_of_files, priorities, keys_and_queues}
"""Programs that get nothing, because the filter on system calls refuses their calls."""
