"""Which sandboxes this machine has, and a rank server behind them.

`grader` opens a `Sandbox` for each attempt at an exercise; `choose` is called once for a batch.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from helpers.grading.record import Protection
from helpers.grading.sandbox import bubblewrap, bubblewrapped, landlocked
from helpers.grading.sandbox.bubblewrapped import Bubblewrapped, Template
from helpers.grading.sandbox.cgroup import can_bound, put_into_group
from helpers.grading.sandbox.guard import Guard
from helpers.grading.sandbox.landlocked import Landlocked
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import Staged
from helpers.grading.sandbox.turns import Turns
from helpers.grading.setting import CannotGrade
from helpers.ranks.connection import Connection
from helpers.ranks.site import Beside, Site

_FILTER = "reading other ranks' memory, making namespaces, mounting, loading kernel code"

_TOLD = (
    "forging what a rank tells of itself, where an exercise drives a class or a script: "
    "gradients left, memory held"
)

# What each level stops and what not, but for memory.
PROTECTION = {
    "bubblewrap": Protection(
        "bubblewrap", (*bubblewrapped.STOPS, _FILTER), (*bubblewrapped.DOES_NOT_STOP, _TOLD)
    ),
    "landlock": Protection(
        "landlock", (*landlocked.STOPS, _FILTER), (*landlocked.DOES_NOT_STOP, _TOLD)
    ),
    "none": Protection("none", (), ("anything: answers run with the grader's permissions",)),
}
_UNBOUND = {
    "memory": "memory of the kernel's own: no memory cgroup can be had here, only the machine's whole is "
    "seen",
    "cpu": "taking processor time from others by hundreds of sessions: no cpu cgroup can be had here; what "
    "is too slow is tried again alone",
    "pids": "processes that leave their session and outlive the sandbox behind Landlock, and as root any "
    "number of them until the guard looks, every 0.05 s: no pids cgroup can be had here",
}


def protection_here(level: str) -> Protection:
    """Return what a level stops on this machine and what not, as every result tells it."""
    protection = PROTECTION[level]
    if level == "none":
        return protection
    missing = [words for kind, words in _UNBOUND.items() if not can_bound(kind)]
    return replace(protection, does_not_stop=(*protection.does_not_stop, *missing))


class NoSandbox(CannotGrade):
    """The sandbox that was asked for is not available here. One line: why, and what to do."""


@dataclass(frozen=True)
class Plan:
    """How sandboxes are made in this batch: at which level, of which files, with which limits.

    Use as a context manager where the process lives on: behind bubblewrap it holds a `Template`, which
    forks the rank servers of all sandboxes. One thread makes them.
    """

    level: str
    staged: Staged
    limits: Limits = Limits()
    turns: Turns = Turns()
    _templates: list[Template] = field(default_factory=list, compare=False, repr=False)
    """The template of this process, once there is one; a copy with other limits has the same."""

    def __reduce__(self) -> tuple[type[Plan], tuple[object, ...]]:
        # A grader that is spawned gets no template of another process: it makes its own.
        return Plan, (self.level, self.staged, self.limits, self.turns)

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *args: object) -> None:
        while self._templates:
            self._templates.pop().close()

    @property
    def does_not_stop(self) -> tuple[str, ...]:
        """What these sandboxes do not stop, as every result says."""
        return protection_here(self.level).does_not_stop

    def begin(self) -> None:
        """Start what takes a while, without waiting for it."""
        if self.level == "bubblewrap":
            self._template()

    def site(self, slot: int) -> Site:
        if self.level == "bubblewrap":
            return Bubblewrapped(self._template(), self.limits, slot)
        return Landlocked(self.staged, self.limits) if self.level == "landlock" else Beside()

    def preload(self) -> None:
        """Have what the later notebooks need imported once, if servers are forked from a template."""
        if self.level == "bubblewrap":
            self._template().preload()

    def _template(self) -> Template:
        # One that was ended from outside, or that the process we were forked from made, is of no use here.
        if not self._templates or not self._templates[-1].alive:
            self._templates[:] = [Template(self.staged)]
        return self._templates[-1]


def choose(asked: str, staged: Staged) -> str:
    """Return the level to use: the one asked for, or for "auto" the strongest that works.

    Raise NoSandbox where it does not work here, or where "auto" finds none.
    """
    reasons = {"bubblewrap": lambda: bubblewrap.why_not(staged), "landlock": landlocked.why_not}
    if asked == "none":
        return asked
    said = []
    # Each is tried: no file says whether the kernel will allow it, least of all in a container.
    for level, why_not in reasons.items():
        if asked in {"auto", level} and sys.platform == "linux":
            if not (reason := why_not()):
                return level
            said.append(reason)
    why = "; ".join(said) or "sandboxes exist on Linux only"
    raise NoSandbox(
        f"no sandbox: {why}. Install bubblewrap, or give --sandbox none if you trust everybody "
        "who hands in: their code then runs as you."
    )


def plan_here(asked: str, staged: Staged, out: Path) -> Plan:
    """Return how a batch whose results go to `out` makes its sandboxes. Raise NoSandbox."""
    return Plan(choose(asked, staged), staged, turns=Turns(str(out / ".turns")))


class Sandbox:
    """A rank server in a sandbox, with its guard. Use as a context manager.

    preload: what the later notebooks need is imported already.
    """

    def __init__(self, plan: Plan, slot: int = 0, preload: bool = False) -> None:
        self.plan, self.slot = plan, slot
        if preload:
            plan.preload()
        site = plan.site(slot)
        self.connection = Connection(site)
        first = getattr(site, "first", 0)
        enclosed = plan.level == "bubblewrap"
        most = plan.limits.world_bytes + 2 * plan.limits.disk_bytes
        # Before any rank is forked, as children start in the group of their parent.
        self.group = put_into_group(first, most, plan.limits.processes) if first else None
        bounded = self.group is not None and self.group.bounds_memory
        self.guard = Guard(first, plan.limits, enclosed, bounded) if first else None
        if preload:
            try:
                self.connection.preload()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def end_after(self, wall_s: float, cpu_s: float) -> None:
        """End it when it lives for longer from now on, or uses more processor time in all."""
        if self.guard is not None:
            self.guard.end_after(wall_s, cpu_s)

    @property
    def found(self) -> str:
        """What its guard or the kernel ended it for, or ""."""
        if self.group is not None and self.group.killed:
            limits = self.plan.limits
            most = (limits.world_bytes + 2 * limits.disk_bytes) >> 20
            return (
                f"all ranks together, with the kernel's memory for them, used more than {most:,} MB"
            )
        return self.guard.found if self.guard else ""

    @property
    def is_out_of_time(self) -> bool:
        """Whether its guard ended it because the time that it may take was used up."""
        return self.guard is not None and self.guard.is_out_of_time

    @property
    def cpu_s(self) -> float:
        """Processor time of all that has run in it, as far as somebody outside can tell."""
        return self.guard.cpu_s if self.guard else 0.0

    @property
    def lost(self) -> bool:
        """It was ended from outside, by nothing that an answer can do."""
        return bool(getattr(self.connection.site, "lost", False))

    def close(self) -> None:
        if self.guard:
            self.guard.close()
        if self.group:
            self.group.end()  # first: what a process still does would undo the sweep of its site
        self.connection.close()
        if self.group:
            self.group.close()
