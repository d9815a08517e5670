"""A store that survives the replicas, and replicas that may be killed."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch._C._distributed_c10d import Store, TCPStore

from helpers.checks.scripts import Referee, under_fork
from helpers.ranks.processes import end_with_parent

STORE_S = 2.0
"""How long a store waits for a key that nobody sets."""
SYNC_S = 4.0
WHOLE_S = 10.0
"""Of processor time, for all replicas of a case."""
OWN = "check"
"""What the keys begin with that the check sets for itself."""


@contextmanager
def store_of_its_own() -> Iterator[int]:
    """Serve a TCPStore in a process that no replica's death ends; give its port."""
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
        ours.settimeout(SYNC_S)
        yield int(ours.recv(16))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ours.close()
        theirs.close()


def connect(port: int) -> TCPStore:
    return TCPStore("127.0.0.1", port, timeout=timedelta(seconds=STORE_S))


def start(script: Path, replicas: int, referee: Referee, dies: int) -> dict[str, Any]:
    """Run a script in each replica. Replica `dies` may be killed by the referee; the others go on.

    Whether it was killed says the process that starts the replicas, and not what is left of that one.
    """
    found = under_fork(script, replicas, timeout_s=WHOLE_S, others_go_on=True, referee=referee)
    if dies in found["killed"][0]:
        found["exits"][dies] = 0
        found["values"][dies] = {"killed": True}
    return found


def have_come(own: Store, key: str, count: int) -> bool:
    return int(own.add(key, 0)) >= count


def until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + SYNC_S
    while not holds() and time.monotonic() < give_up:
        time.sleep(0.002)
