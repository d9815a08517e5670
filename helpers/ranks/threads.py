"""Read a process's state from the kernel: its running and waiting threads, their deadlines, and its sockets.

A waiting thread is in a system call. Processes that may trace the thread can read the call's number and
arguments in /proc/PID/task/TID/syscall (see proc(5)). The wait's deadline is in the thread's memory.
"""

from __future__ import annotations

import contextlib
import os
import platform
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.ranks.processes import read_proc_file

FOREVER = float("inf")
# gloo's name for the thread that checks its connections every 10 ms, as long as the process runs.
GLOO_LOOP = "gloo_tcp_loop"
# The arguments of the wait of gloo's thread: 64 events, 10 ms. They identify the thread in torch before 2.12,
# where it has no name.
_GLOO_EPOLL_ARGUMENTS = [64, 10]
# RPC's name for the thread that checks whether a message has arrived. This thread never sleeps.
RPC_LOOP = "TP_SHM_reactor"

# Numbers of system calls, by machine: asm/unistd_64.h and asm-generic/unistd.h.
_SYSTEM_CALLS = {
    "x86_64": {
        202: "futex",
        449: "futex_waitv",
        232: "epoll_wait",
        281: "epoll_pwait",
        7: "poll",
        271: "ppoll",
        45: "recvfrom",
        0: "read",
        35: "nanosleep",
        230: "clock_nanosleep",
        72: "fcntl",
        73: "flock",
    },
    "aarch64": {
        98: "futex",
        449: "futex_waitv",
        22: "epoll_pwait",
        73: "ppoll",
        207: "recvfrom",
        63: "read",
        101: "nanosleep",
        115: "clock_nanosleep",
        25: "fcntl",
        32: "flock",
    },
}.get(platform.machine(), {})
_FUTEX_PRIVATE, _FUTEX_REALTIME, _FUTEX_WAIT, _FUTEX_WAIT_BITSET = 128, 256, 0, 9
# Commands of fcntl(2) that wait for a lock of a process or of an open file: F_SETLKW, F_OFD_SETLKW.
_LOCK_COMMANDS = frozenset({7, 38})
# The state of a listening socket in /proc/net/tcp; TCP_LISTEN in the kernel's tcp_states.h.
_LISTEN_STATE = "0A"
# time.sleep() sleeps until a point in time, but torch's polling of a store sleeps for a duration.
_TIMER_ABSTIME = 1
_TIMESPEC = struct.Struct("=qq")


@dataclass(frozen=True, slots=True)
class Thread:
    """The kernel's description of one thread.

    Attributes:
        inner: Its id in the process's namespace, which in a sandbox differs from the id outside.
        state: A letter of proc(5), such as "R" (runs), "S" (sleeps), "D" (waits for a disk), "T" (stopped).
        switches: The number of times that it has given up the processor. As long as the number is unchanged,
            the thread has not run.
        call: The system call in which it waits; "" if the call is not in `_SYSTEM_CALLS`, "?" if it is
            hidden.
        ends_in_s: Maximum number of seconds until the wait times out; FOREVER if the wait never times out.
        private: Whether only a thread of the same process or of its descendants can wake it.
        fd: The descriptor from which it receives.
        ran_ms: Its running time. It is read only for RPC_LOOP, which never gives up the processor on a
            machine with many cores.
    """

    id: int
    inner: int
    name: str
    state: str
    switches: int
    call: str = ""
    ends_in_s: float = 0.0
    private: bool = False
    fd: int = -1
    ran_ms: int = 0


def read_threads(pid: int) -> list[Thread]:
    """Return the threads of a process, main thread first, leaving out those that end meanwhile."""
    if sys.platform != "linux" or not pid:
        return []
    threads = []
    with contextlib.suppress(OSError):  # It may exit at any moment.
        thread_ids = map(int, os.listdir(f"/proc/{pid}/task"))
        # After the largest id, the kernel continues with small ones, so the main thread's may be the largest.
        for thread_id in sorted(thread_ids, key=lambda thread_id: (thread_id != pid, thread_id)):
            with contextlib.suppress(OSError, IndexError, ValueError):
                threads.append(_read_thread(pid, thread_id))
    return threads


def thread_times(pid: int, separate_name: str = "") -> tuple[int, int, int]:
    """Return the running time of a process's threads, and their time in the queue for a core, in ns.

    The last number is the time in the queue of the threads called `separate_name`, which is not part of the
    second number.
    """
    ran_ns = queued_ns = separate_queued_ns = 0
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = read_proc_file(f"/proc/{pid}/task/{task}/schedstat").split()
                ran_ns += int(fields[0])
                if (
                    separate_name
                    and read_proc_file(f"/proc/{pid}/task/{task}/comm").strip() == separate_name
                ):
                    separate_queued_ns += int(fields[1])
                else:
                    queued_ns += int(fields[1])
    return ran_ns, queued_ns, separate_queued_ns


def _read_thread(pid: int, tid: int) -> Thread:
    folder = f"/proc/{pid}/task/{tid}"
    name, state, switches, inner = "", "?", 0, tid
    for line in read_proc_file(f"{folder}/status").splitlines():
        key, _, value = line.partition(":")
        if key == "Name":
            name = value.strip()
        elif key == "State":
            state = value.split()[0]
        elif key == "NSpid":
            inner = int(value.split()[-1])
        elif key in {"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"}:
            switches += int(value)
    if state != "S":  # A running thread is not in a waiting system call.
        ran_ns = int(read_proc_file(f"{folder}/schedstat").split()[0]) if name == RPC_LOOP else 0
        return Thread(tid, inner, name, state, switches, ran_ms=ran_ns // 1_000_000)
    try:
        words = read_proc_file(f"{folder}/syscall").split()
    except PermissionError:
        return Thread(tid, inner, name, state, switches, "?")
    if not words or not words[0].isdigit():
        return Thread(tid, inner, name, "R" if words[:1] == ["running"] else state, switches)
    call = _SYSTEM_CALLS.get(int(words[0]), "")
    args = [int(word, 16) for word in words[1:7]]
    if call == "clock_nanosleep" and args[1] & _TIMER_ABSTIME:
        call = "sleep"
    if call == "fcntl":
        call = "flock" if args[1] in _LOCK_COMMANDS else ""
    if call == "epoll_wait" and args[2:4] == _GLOO_EPOLL_ARGUMENTS:
        name = GLOO_LOOP
    ends_in_s, private = _remaining_wait(call, args, pid)
    if call == "read":
        private = _is_anonymous_pipe(pid, args[0])
    fd = args[0] if call == "recvfrom" else -1
    return Thread(tid, inner, name, state, switches, call, ends_in_s, private, fd)


def _remaining_wait(call: str, args: list[int], pid: int) -> tuple[float, bool]:
    """Return a wait's maximum remaining time in seconds, and whether only the process can end the wait."""
    if call == "futex":
        private = bool(args[1] & _FUTEX_PRIVATE)
        kind = args[1] & 127
        if kind not in {_FUTEX_WAIT, _FUTEX_WAIT_BITSET}:
            return 0.0, private
        if not args[3]:
            return FOREVER, private
        remaining_s = _timespec(pid, args[3])
        if kind == _FUTEX_WAIT_BITSET:  # waits until a point in time, not for a duration
            clock = time.CLOCK_REALTIME if args[1] & _FUTEX_REALTIME else time.CLOCK_MONOTONIC
            remaining_s -= time.clock_gettime(clock)
        return max(0.0, remaining_s), private
    if call in {"epoll_wait", "epoll_pwait"}:
        return _milliseconds(args[3]), False
    if call == "poll":
        return _milliseconds(args[2]), False
    if call == "ppoll":
        return (_timespec(pid, args[2]) if args[2] else FOREVER), False
    if call in {"recvfrom", "read", "flock"}:
        return FOREVER, False
    return 0.0, False


def _is_anonymous_pipe(pid: int, fd: int) -> bool:
    """Return whether only a process and its descendants can write to the pipe that the process reads.

    A rank starts without a pipe to read from, so it has created this pipe itself. (By contrast, a fifo has a
    name, so other processes may open it.)
    """
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/{fd}").startswith("pipe:")
    return False


def lock_holders(pid: int) -> frozenset[int]:
    """Return the holders of the file locks for which threads of a process wait; see proc_locks(5).

    For an open file description lock (F_OFD_SETLKW), which several processes may share, the id is -1.
    """
    holders = set()
    with contextlib.suppress(OSError, ValueError, IndexError):
        holder = 0
        # Each lock is followed by the processes waiting for it: "1: FLOCK ADVISORY WRITE 123 ...", "1: ->
        # FLOCK ...".
        for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
            _, *fields = line.split()
            if fields[0] != "->":
                holder = int(fields[3])
            elif int(fields[4]) == pid:
                holders.add(holder)
    return frozenset(holders)


def holders_of_open_files(pid: int) -> frozenset[int]:
    """Return the holders of write locks on files that this process has also opened.

    To acquire such a lock, a library such as sqlite does not wait in the kernel, but sleeps and tries again.
    """
    holders = set()
    with contextlib.suppress(OSError, ValueError, IndexError):
        files = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                status = os.stat(f"/proc/{pid}/fd/{fd}")
                files.add((os.major(status.st_dev), os.minor(status.st_dev), status.st_ino))
        for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
            _, *fields = line.split()
            if fields[0] == "POSIX" and fields[2] == "WRITE":
                major, minor, inode = fields[4].split(":")
                if (int(major, 16), int(minor, 16), int(inode)) in files:
                    holders.add(int(fields[3]))
    return frozenset(holders - {pid})


def listening_ports(pid: int, table: Iterable[Sequence[str]] | None = None) -> frozenset[int]:
    """Return the TCP ports on which a process listens in its network; empty if they are hidden.

    table: the `connections` of that network, if they have already been read.
    """
    with contextlib.suppress(OSError, ValueError):
        ports_by_inode = {
            int(fields[9]): int(fields[1].rpartition(":")[2], 16)
            for fields in (connections(pid) if table is None else table)
            if fields[3] == _LISTEN_STATE
        }
        if ports_by_inode:
            return frozenset(
                ports_by_inode[inode] for inode in _socket_inodes(pid) & ports_by_inode.keys()
            )
    return frozenset()


def connection_queues(
    pid: int, table: Iterable[Sequence[str]] | None = None
) -> dict[int, tuple[int, int]] | None:
    """Return (bytes not yet sent, bytes not yet read) for each TCP connection of a process, by inode.

    Return None if the kernel does not show them, because the process has ended or is in a sandbox. table: the
    `connections` of its network, if they have already been read.
    """
    with contextlib.suppress(OSError, ValueError):
        inodes = _socket_inodes(pid)
        queues = {}
        for fields in connections(pid) if table is None else table:
            if fields[3] != _LISTEN_STATE and int(fields[9]) in inodes:
                sent, unread = fields[4].split(":")
                queues[int(fields[9])] = int(sent, 16), int(unread, 16)
        return queues
    return None


def connections(pid: int) -> Iterator[list[str]]:
    """Yield the fields of each TCP socket in a process's network; see proc(5), /proc/net/tcp."""
    for table in ("tcp", "tcp6"):
        yield from map(
            str.split, Path(f"/proc/{pid}/net/{table}").read_text(encoding="utf-8").splitlines()[1:]
        )


def _socket_inodes(pid: int) -> set[int]:
    """Return the inodes of a process's open sockets."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            if target.startswith("socket:["):
                inodes.add(int(target[8:-1]))
    return inodes


def _milliseconds(argument: int) -> float:
    value = argument & 0xFFFFFFFF
    return FOREVER if value >= 1 << 31 else value / 1000


def _timespec(pid: int, address: int) -> float:
    # A process's memory and its `syscall` file are open to processes that may trace it (ptrace(2)). If Yama
    # restricts tracing to descendants, ranks still qualify.
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        seconds, nanoseconds = _TIMESPEC.unpack(os.pread(fd, _TIMESPEC.size, address))
    except struct.error:
        return 0.0
    finally:
        os.close(fd)
    return float(seconds + nanoseconds / 1e9)
