"""End a script's run by a signal, which the ranks receive as under torchrun, with time to exit.

Ctrl-C reaches only this process, because each rank has a separate session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.ranks.failures import describe_wait
from helpers.scripts.terminal import RankOutput, TerminalDisplay

if TYPE_CHECKING:
    from helpers.ranks.deadlock_watch import DeadlockDetector
    from helpers.ranks.world import World

GRACE_S = 30.0
"""Time for ranks to exit after a signal, as under torchrun."""
# A rank that waits inside torch for this time after a signal cannot handle the signal.
_BLOCKED_S = 1.0
_POLL_S = 0.05


@dataclass
class Received:
    """The signal that ended this run; 0 if there was none, or if it was SIGINT."""

    number: int = 0


@contextmanager
def catch_signals() -> Iterator[Received]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, and remember which signal came first."""
    received = Received()
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def handle(number: int, frame: object) -> None:
        received.number = received.number or number
        signal.raise_signal(signal.SIGINT)

    caught = (signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, handle) for number in caught}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class StoppableDisplay(TerminalDisplay):
    """Passes a signal on to the ranks, and reports each rank's position."""

    def __init__(self, output: RankOutput, received: Received) -> None:
        super().__init__(output)
        self._received = received

    def show_stopped(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        from helpers.ranks.deadlock_watch import current_waits

        self.waits = [
            f"  rank {wait.rank}: {describe_wait(wait)}" for wait in current_waits(detector).waits
        ]
        number = self._received.number or signal.SIGINT
        for member in world.members:
            if member.pid and not member.is_done:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member.pid, number)
        start = time.monotonic()
        while time.monotonic() < start + GRACE_S and not all(m.is_done for m in world.members):
            world.poll(_POLL_S)
            world.read_logs()
            if time.monotonic() > start + _BLOCKED_S and all(
                member.is_done or world.collector.blocking_call(member.rank) is not None
                for member in world.members
            ):
                break

    waits: list[str] = []
