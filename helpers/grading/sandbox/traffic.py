"""What a sandbox's ranks have sent to each other, as the kernel counted it: read from outside.

    ranks' sockets --pidfd_getfd, TCP_INFO--> bytes from rank to rank
    the sandbox's network --/proc/PID/net----> connections opened, datagrams sent

A trace is what ranks say of themselves; this is not. `bubblewrapped` reads it when all ranks have answered
and are still there, `explained` holds the two against each other.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import stat
import struct
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from helpers.ranks.run import Traffic

_PIDFD_GETFD = 438  # the same number on every architecture
# Of struct tcp_info in linux/tcp.h: a state, the place of tcpi_bytes_acked and tcpi_bytes_received.
_LISTENING, _ACKED_AND_RECEIVED, _INFO_BYTES = 10, 120, 136
_DATAGRAMS = (
    "Udp:OutDatagrams",
    "UdpLite:OutDatagrams",
    "Udp6OutDatagrams",
    "UdpLite6OutDatagrams",
)
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Counters:
    """What the network of a sandbox has counted since it was made."""

    opened: int = 0
    datagrams: int = 0


def counters(pid: int) -> Counters:
    """Read the counters of the network that a process is in. Raise OSError where they cannot be read."""
    folder = Path("/proc", str(pid), "net")
    told = _snmp((folder / "snmp").read_text(encoding="utf-8"))
    with suppress(OSError, ValueError):  # a kernel without IPv6 has none
        for line in (folder / "snmp6").read_text(encoding="utf-8").splitlines():
            name, value = line.split()
            told[name] = int(value)
    datagrams = sum(told.get(name, 0) for name in _DATAGRAMS)
    return Counters(told.get("Tcp:ActiveOpens", 0), datagrams)


def traffic_of(pids: Sequence[int], before: Counters, most_files: int) -> Traffic:
    """Read what ranks, in this order, have sent to each other. Raise OSError where it cannot be read.

    before: what `counters` gave when none of them had been started. most_files: that one may have open.
    """
    ends: dict[tuple[int, int], tuple[int, int]] = {}
    for rank, pid in enumerate(pids):
        for local, peer, received in _connections(pid, most_files):
            ends[local, peer] = (rank, received)
    sent: dict[tuple[int, int], int] = defaultdict(int)
    for (local, peer), (rank, received) in ends.items():
        if (peer, local) in ends:
            sent[ends[peer, local][0], rank] += received
    # A connection of which one end was closed has no counterpart, and `mismatch` speaks of it.
    both = sum((peer, local) in ends for local, peer in ends) // 2
    now = counters(pids[0])
    return Traffic(dict(sent), both, now.opened - before.opened, now.datagrams - before.datagrams)


def _connections(pid: int, most_files: int) -> set[tuple[int, int, int]]:
    """Return (own port, peer's port, bytes received) of each TCP connection that a process holds."""
    found = set()
    handle = os.pidfd_open(pid)
    try:
        # Each number is tried, as who is not root may take a rank's files, but not list them: those below the
        # size of its table, which anybody may read and which is small (64) until it has many files.
        for number in range(min(most_files, _table_size(pid))):
            if (connection := _connection(handle, number)) is not None:
                found.add(connection)
    finally:
        os.close(handle)
    return found


def _table_size(pid: int) -> int:
    """Return how many descriptors a process has room for; each open one has a smaller number (proc(5))."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("FDSize:"):
            return int(line.split()[1])
    raise OSError(errno.ENODATA, f"/proc/{pid}/status has no FDSize")


def _connection(handle: int, number: int) -> tuple[int, int, int] | None:
    """Look at one descriptor of another process; None where it is not a connection over TCP."""
    # This copies the rank's own descriptor, so the kernel answers for the socket, not the rank. The os
    # module has no such call.
    fd = _LIBC.syscall(_PIDFD_GETFD, handle, number, 0)
    if fd < 0:
        if (code := ctypes.get_errno()) == errno.EBADF:
            return None
        raise OSError(code, os.strerror(code))
    # The descriptor may be of any kind: only its kind is looked at, nothing is read from it.
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with socket.socket(fileno=fd) as found:
        internet = found.family in (socket.AF_INET, socket.AF_INET6)
        if not internet or found.type != socket.SOCK_STREAM:
            return None
        info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if info[0] == _LISTENING or len(info) < _INFO_BYTES:
            return None
        # Received bytes, because some of those that were sent may still be in flight.
        received = struct.unpack_from("QQ", info, _ACKED_AND_RECEIVED)[1]
        try:
            return found.getsockname()[1], found.getpeername()[1], received
        except OSError:  # it is not connected, or no longer
            return None


def _snmp(text: str) -> dict[str, int]:
    """Read pairs of lines: "Tcp: Name Name ..." and "Tcp: 1 2 ..."."""
    told = {}
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        kind, *words = names.split()
        for word, value in zip(words, values.split()[1:], strict=False):
            told[kind + word] = int(value)
    return told
