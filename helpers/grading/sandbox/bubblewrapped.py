"""The strongest sandbox that the course has: each rank server in namespaces of its own, behind bubblewrap.

`levels` chooses it where `bwrap` is installed and may make namespaces.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from helpers.grading.sandbox.bubblewrap import LIBRARIES, ROOT, python_folders
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.template import Forked, Template
from helpers.grading.sandbox.traffic import Counters, counters, traffic_of
from helpers.ranks.processes import children_of, end, inner_pid
from helpers.ranks.run import Traffic
from helpers.ranks.site import Process

SCRATCH = "/tmp/worlds"
FIRST_USER = 61_184
"""A range that systemd leaves for "dynamic" users: nobody owns files there."""

_LOOKS = 5

STOPS = (
    "reading or writing any file but the system's and Python's own, which are read-only",
    "the network, but for its own loopback",
    "seeing or signalling processes outside, and what they have in memory",
    "leaving a process behind",
)
DOES_NOT_STOP = (
    "an attack on the kernel itself",
    "talking past a rule on traffic by files or memory, behind a show of the right calls",
    "seeing by which names this machine knows the folders that it shows (/proc/self/mountinfo)",
    "signs between sandboxes that run at the same time, by locks on files that all may read",
)


class Bubblewrapped:
    """The site of one rank server within namespaces of its own. See `helpers.ranks.site.Site`.

    slot: a number that no other grader has at the same time: as root each gets a user id of its own.
    """

    root = ROOT
    scratch = SCRATCH
    emptied: tuple[str, ...] = ("/tmp", "/dev/shm")
    idle_s: float = 0.0

    def __init__(self, template: Template, limits: Limits, slot: int = 0) -> None:
        self.template, self.limits, self.slot = template, limits, slot
        self.most_output = limits.output_bytes
        self.most_result, self.most_parts = limits.result_bytes, limits.result_parts
        self.first = 0
        """The process id, out here, of the first process within."""
        self._before = Counters()

    @property
    def lost(self) -> bool:
        """The template has gone, and all its servers with it: no answer can reach so far."""
        return not self.template.alive

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        asked = {
            "limits": self.limits.of_a_process(),
            "disk_bytes": self.limits.disk_bytes,
            "user": 0 if os.geteuid() else FIRST_USER + self.slot,
            "folder": SCRATCH,
            "emptied": self.emptied,
            "kept": [path for path in python_folders() if path.startswith(("/tmp/", "/dev/shm/"))],
        }
        self.first = self.template.fork(asked, control, log.fileno())
        return Forked(self.first)

    def outside(self, pid: int) -> int:
        for _ in range(_LOOKS):  # where a sibling ends meanwhile, the kernel's list has gaps
            for child in children_of(self.first):
                if inner_pid(child) == pid:
                    return child
        return 0

    def starting(self) -> None:
        with suppress(OSError):
            self._before = counters(self.first)

    def traffic(self, pids: Sequence[int]) -> Traffic | None:
        try:
            return traffic_of(pids, self._before, self.limits.open_files)
        except PermissionError:  # some systems let nobody look but root
            return None
        except OSError as error:
            return Traffic(problem=str(error.strerror or error))

    def environment(self) -> tuple[dict[str, str], list[str]]:
        return {}, []  # ranks in a sandbox hear nothing of the grader's

    def cwd(self) -> str:
        return "/tmp"

    def path(self) -> list[str]:
        shown = (*python_folders(), *LIBRARIES)
        return [ROOT, *(folder for folder in sys.path if folder.startswith(shown))]

    def close(self) -> None:
        end(self.first)  # and with the first process all others within
