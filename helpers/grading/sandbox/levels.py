"""Choose the strongest sandbox that works on this machine, and start rank servers in it.

`grader` opens a `Sandbox` for each attempt at an exercise. `choose_level` is called once for each batch.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from helpers.check_result import Outcome
from helpers.grading.grade_options import CannotGrade
from helpers.grading.record import Protection
from helpers.grading.sandbox import bubblewrap, bubblewrapped, landlocked
from helpers.grading.sandbox.batch_lock import BatchLock
from helpers.grading.sandbox.bubblewrapped import BubblewrapSite, Template
from helpers.grading.sandbox.cgroup import can_bound, put_into_group
from helpers.grading.sandbox.guard import Exceeded, LimitGuard
from helpers.grading.sandbox.landlocked import LandlockSite
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import StagedFiles
from helpers.ranks.connection import Connection
from helpers.ranks.placement import LocalSite, Site

_FILTER = "reading other ranks' memory, making namespaces, mounting, loading kernel code"

_REPORT_FORGERY = (
    "forging a rank's reports in exercises that drive a class or a script, such as remaining "
    "gradients or memory"
)

# The attacks that each level stops or does not stop. `protection_here` adds this machine's missing limits.
PROTECTION = {
    "bubblewrap": Protection(
        "bubblewrap",
        (*bubblewrapped.STOPS, _FILTER),
        (*bubblewrapped.DOES_NOT_STOP, _REPORT_FORGERY),
    ),
    "landlock": Protection(
        "landlock", (*landlocked.STOPS, _FILTER), (*landlocked.DOES_NOT_STOP, _REPORT_FORGERY)
    ),
    "none": Protection("none", (), ("anything: answers run with the grader's permissions",)),
}
_MISSING_CGROUPS = {
    "memory": "the kernel's own memory: no memory cgroup is available here, so only the machine's total "
    "memory is watched",
    "cpu": "taking processor time from others by creating hundreds of sessions: no cpu cgroup is "
    "available here; "
    "slow answers are run again alone",
    "pids": "processes that leave their session and outlive the sandbox behind Landlock, and as root any "
    "number of them until the guard looks, every 0.05 s: no pids cgroup is available here",
}


def protection_here(level: str) -> Protection:
    """Return the attacks that a level stops or does not stop on this machine. Every result lists them."""
    protection = PROTECTION[level]
    if level == "none":
        return protection
    missing = [words for kind, words in _MISSING_CGROUPS.items() if not can_bound(kind)]
    return replace(protection, does_not_stop=(*protection.does_not_stop, *missing))


class NoSandbox(CannotGrade):
    """The requested sandbox is not available here. The message is one line with the reason and advice."""


@dataclass(frozen=True)
class Plan:
    """The level, files and limits of a batch's sandboxes.

    Use a plan as a context manager if the process continues afterwards, because with bubblewrap the plan has
    a `Template`, which forks the rank servers of all sandboxes. Only one thread may create sandboxes.
    """

    level: str
    staged: StagedFiles
    limits: Limits = Limits()
    lock: BatchLock = BatchLock()
    _templates: list[Template] = field(default_factory=list, compare=False, repr=False)
    """The template of this process, once it exists. Copies with different limits share it."""

    def __reduce__(self) -> tuple[type[Plan], tuple[object, ...]]:
        # A spawned grader cannot use the template of a different process, so it creates a new one.
        return Plan, (self.level, self.staged, self.limits, self.lock)

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *args: object) -> None:
        while self._templates:
            self._templates.pop().close()

    @property
    def does_not_stop(self) -> tuple[str, ...]:
        """The attacks that these sandboxes do not stop, for every result."""
        return protection_here(self.level).does_not_stop

    def begin(self) -> None:
        """Start the slow parts without waiting for them."""
        if self.level == "bubblewrap":
            self._template()

    def site(self, slot: int) -> Site:
        if self.level == "bubblewrap":
            return BubblewrapSite(self._template(), self.limits, slot)
        return LandlockSite(self.staged, self.limits) if self.level == "landlock" else LocalSite()

    def preload(self) -> None:
        """Import the later notebooks' modules in the template, if there is one."""
        if self.level == "bubblewrap":
            self._template().preload()

    def _template(self) -> Template:
        # A template is useless if it was killed, or if it was made by a parent process before this process
        # was forked.
        if not self._templates or not self._templates[-1].alive:
            self._templates[:] = [Template(self.staged)]
        return self._templates[-1]


def choose_level(requested: str, staged: StagedFiles) -> str:
    """Return `requested`, or the strongest level that works if `requested` is "auto".

    Raises:
        NoSandbox: The level does not work here, or "auto" finds no working level.
    """
    reasons = {
        "bubblewrap": lambda: bubblewrap.reason_unavailable(staged),
        "landlock": landlocked.reason_unavailable,
    }
    if requested == "none":
        return requested
    said = []
    # Try each level, because no file shows whether the kernel allows it, especially in a container.
    for level, why_not in reasons.items():
        if requested in {"auto", level} and sys.platform == "linux":
            if not (reason := why_not()):
                return level
            said.append(reason)
    why = "; ".join(said) or "sandboxes exist on Linux only"
    raise NoSandbox(
        f"no sandbox: {why}. Install bubblewrap, or pass --sandbox none if you trust all learners: "
        f"their code then runs with your permissions."
    )


def make_plan(level: str, staged: StagedFiles, out: Path) -> Plan:
    """Return the plan of a batch that writes its results to `out`. Raise NoSandbox."""
    return Plan(choose_level(level, staged), staged, lock=BatchLock(str(out / ".turns")))


class Sandbox:
    """A rank server in a sandbox, with its guard. Use it as a context manager.

    preload: whether to import the later notebooks' modules before the first answer runs.
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
        # Do this before any rank is forked, because children start in the group of their parent.
        self.group = put_into_group(first, most, plan.limits.processes) if first else None
        bounded = self.group is not None and self.group.bounds_memory
        self.guard = LimitGuard(first, plan.limits, enclosed, bounded) if first else None
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
        """End the sandbox after `wall_s` more seconds, or after `cpu_s` of processor time in all."""
        if self.guard is not None:
            self.guard.end_after(wall_s, cpu_s)

    @property
    def found(self) -> Exceeded | None:
        """The exceeded limit for which the guard or the kernel ended the sandbox, or None."""
        if self.group is not None and self.group.killed:
            limits = self.plan.limits
            most = (limits.world_bytes + 2 * limits.disk_bytes) >> 20
            return Exceeded(
                f"all ranks together, with the kernel's memory for them, used more than {most:,} MB",
                Outcome.TOO_MUCH_MEMORY,
            )
        return self.guard.found if self.guard else None

    @property
    def cpu_s(self) -> float:
        """Processor time of all processes in the sandbox, as far as visible from outside."""
        return self.guard.cpu_s if self.guard else 0.0

    @property
    def lost(self) -> bool:
        """Whether the sandbox was ended from outside, which no answer can cause."""
        return bool(getattr(self.connection.site, "lost", False))

    def close(self) -> None:
        if self.guard:
            self.guard.close()
        if self.group:
            # end them first, because running processes would undo the sweep of the site
            self.group.end()
        self.connection.close()
        if self.group:
            self.group.close()
