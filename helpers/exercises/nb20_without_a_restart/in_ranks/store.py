"""A store that survives the replicas."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from torch._C._distributed_c10d import Store, TCPStore

from helpers.exercises.shared.in_ranks.attempts import WAIT_S
from helpers.ranks.processes import end_with_parent

STORE_S = 2.0
"""The time for which a store waits for a key that no rank sets, in seconds."""
CHECK_PREFIX = "check"
"""The prefix of the keys set by the check itself."""


@contextmanager
def serve_store() -> Iterator[int]:
    """Serve a TCPStore in a process that outlives the replicas; yield its port."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        end_with_parent()
        try:
            store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            theirs.sendall(str(store.port).encode())
            signal.pause()
        finally:
            os._exit(0)
    try:
        ours.settimeout(WAIT_S)
        yield int(ours.recv(16))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ours.close()
        theirs.close()


def connect(port: int) -> TCPStore:
    return TCPStore("127.0.0.1", port, timeout=timedelta(seconds=STORE_S))


def has_arrived(check_store: Store, key: str, count: int) -> bool:
    return int(check_store.add(key, 0)) >= count
