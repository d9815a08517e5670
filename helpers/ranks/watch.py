"""Decides, from outside and while it runs, whether a world is stuck.

A world is stuck when every rank that is still there waits inside a call, no call has begun or ended
for a while, and no thread of any rank uses the CPU or sleeps on a clock or on I/O. A rank that
computes, sleeps or reads is busy: then there is nothing to tell, however long it takes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path

from helpers.ranks.world import Member, World
from helpers.trace.diagnosis import RankState, can_complete, diagnose
from helpers.trace.events import Diagnosis

LOOK_S = 0.1
STUCK_S = 0.35
STUCK_THOUGH_IT_FITS_S = 5.0
"""How long nothing may move: when calls do not fit together, and when they do (a transfer that is
starved on a crowded machine would look like this)."""
STUCK_IN_START_S = 2.5
"""How long nothing may move while ranks join a group. torch's TCPStore client sleeps before it tries
again, and its server looks up each client's name, which takes a second where DNS is slow."""
STUCK_IN_MONITORED_S = 6.0
"""How long nothing may move while a rank is in monitored_barrier. That call mostly has a short
timeout of its own, after which it names who is missing: what it says should be heard."""
_IDLE_SHARE = 0.3
"""Of a CPU, for a rank that joins a group: it polls its store."""

_WAITING_CALLS = {
    "x86_64": {202, 232, 281, 441, 7, 271, 449},
    "aarch64": {98, 22, 441, 73, 449},
}
"""System calls in which gloo, autograd and the interpreter wait for one another: futex, futex_waitv,
epoll_wait, epoll_pwait, epoll_pwait2, poll, ppoll. Not among them: nanosleep, read, recv, select."""
_CPU_TICKS = 1  # our own reporting thread may tip the counter over once


@dataclass
class Watcher:
    """Looks at a world every `LOOK_S` seconds; says when it is stuck, and why."""

    world: World
    _since: float | None = None
    _changes: int = -1
    _cpu: dict[int, int] = field(default_factory=dict)

    def look(self, now: float) -> Diagnosis | None:
        """Give the diagnosis of a stuck world, or None. `now` in seconds, on any steady clock."""
        live = [member for member in self.world.members if not member.done]
        moved = self.world.collector.changes != self._changes
        self._changes = self.world.collector.changes
        if moved or not live or not all(self._waits(member) for member in live):
            self._since = None
            return None
        cpu = {member.rank: _cpu_ticks(member.pid) for member in live}
        busy = any(self._is_busy(member) for member in live) or any(
            cpu[rank] > self._cpu.get(rank, -9) + _CPU_TICKS for rank in cpu
        )
        patience = self._patience(live)
        polling = patience > STUCK_S  # such calls look busy at moments, and wait all the same
        if self._since is None or (busy and not polling):
            self._since, self._cpu = now, cpu
            return None
        if now - self._since < patience:
            return None
        if polling and self._works(cpu, now - self._since):
            self._since, self._cpu = now, cpu
            return None
        states, trace = self.states(), self.world.collector.trace()
        unsure = can_complete(states, trace) or any(_is_hidden(member.pid) for member in live)
        if unsure and now - self._since < STUCK_THOUGH_IT_FITS_S:
            return None
        return diagnose(states, trace)

    def _patience(self, live: list[Member]) -> float:
        blocked = (self.world.collector.blocked_in(member.rank) for member in live)
        if any(event is not None and event.call == "monitored_barrier" for event in blocked):
            return STUCK_IN_MONITORED_S
        starting = any(self._starts(member) for member in live)
        return STUCK_IN_START_S if starting else STUCK_S

    def _starts(self, member: Member) -> bool:
        """Tell whether a rank is joining a group: inside torch, but in no call between ranks."""
        return bool(member.inside) and not self.world.collector.unfinished(member.rank)

    def _works(self, cpu: dict[int, int], seconds: float) -> bool:
        """Tell whether a rank has used more of the CPU than polling a store takes."""
        ticks = _IDLE_SHARE * seconds * os.sysconf("SC_CLK_TCK")
        return any(cpu[rank] - self._cpu.get(rank, 0) > ticks for rank in cpu)

    def _is_busy(self, member: Member) -> bool:
        # Within a call the main thread may sleep between two attempts to reach a peer, or to read
        # a store. Outside of torch it sleeps because the learner's code does.
        in_call = self.world.collector.blocked_in(member.rank) is not None or member.inside
        return _is_busy(member.pid, ignore=member.pid if in_call else 0)

    def _waits(self, member: Member) -> bool:
        """Tell whether a rank is in a call that waits, as it says itself or as its stack shows."""
        collector = self.world.collector
        return collector.blocked_in(member.rank) is not None or bool(member.inside)

    def states(self) -> list[RankState]:
        """Give what is known of each rank, for the diagnosis or for the reader of a live view."""
        return [
            RankState(
                member.rank,
                member.state,
                self.world.collector.blocked_in(member.rank) if not member.done else None,
                self.world.collector.unfinished(member.rank),
                member.inside,
                str(member.at) if member.at else "",
            )
            for member in self.world.members
        ]


def waits_now(watcher: Watcher) -> Diagnosis:
    """Say what each rank does now, whether or not it is stuck."""
    return diagnose(watcher.states(), watcher.world.collector.trace())


def _is_busy(pid: int, ignore: int = 0) -> bool:
    """Tell whether any thread of a process runs, or waits for a clock, a disk or a pipe.

    ignore: the id of a thread whose system call says nothing.
    """
    if sys.platform != "linux" or not pid:
        return False
    waiting = _WAITING_CALLS.get(platform.machine())
    tasks: list[Path] = []
    with contextlib.suppress(OSError):  # it may go at any moment
        tasks = [Path(f"/proc/{pid}/task/{name}") for name in os.listdir(f"/proc/{pid}/task")]
    for task in tasks:
        with contextlib.suppress(OSError, IndexError, ValueError):
            if _stat(task / "stat")[0] in "RD":
                return True
            if int(task.name) == ignore:
                continue
            call = (task / "syscall").read_text().split()[0]
            if call == "running" or (waiting is not None and int(call) not in waiting):
                return True
    return False


def _is_hidden(pid: int) -> bool:
    """Tell whether this user may not see in which system calls a process waits: so it is behind walls."""
    with contextlib.suppress(OSError):
        try:
            Path(f"/proc/{pid}/syscall").read_text()
        except PermissionError:
            return True
    return False


def _cpu_ticks(pid: int) -> int:
    """Give the CPU time that a process has used, in clock ticks (10 ms on Linux)."""
    if sys.platform != "linux" or not pid:
        return 0
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = _stat(Path(f"/proc/{pid}/stat"))
        return int(fields[11]) + int(fields[12])
    return 0


def _stat(path: Path) -> list[str]:
    """Give the fields of a /proc stat file after the command's name, which may hold spaces."""
    return path.read_text().rpartition(")")[2].split()
