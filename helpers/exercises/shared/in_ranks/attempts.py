"""Run a job in attempts: start its workers, kill a worker at a planned point, restart the job, report.

    worker: a step begins, a file changes --ask--> Monitor, in the process that forked the workers

The monitor passes each step a number that no worker can know in advance, counts events, and decides when a
worker is killed. So the judge does not need to trust the answer's reports.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from helpers.checks.script_worker import ask
from helpers.checks.scripts import Intervention, Monitor, run_with_forked_workers
from helpers.exercises.shared.in_ranks.disk import (
    EVENTS,
    HALF_WRITTEN,
    NEW_NAME,
    OPENED,
    REMOVED,
    DiskReporter,
)
from helpers.exercises.shared.in_ranks.folder_watch import FolderWatch, watch_folder

ATTEMPTS_S = 6.0
"""Time limit for all attempts of a job together; a right answer needs half a second."""
REPLICAS_S = 10.0
"""Limit of processor time for all replicas of a job that is never restarted."""
WAIT_S = 4.0


class Plan(NamedTuple):
    """The time to kill an attempt's worker: the last rank after `step`, or a rank at an event of its files.

    step: -1 for none. event: the number of the event of `rank`, counting from 1; 0 for none. save: the first
    save whose events are counted.
    """

    step: int = -1
    event: int = 0
    rank: int = 0
    save: int = 0


@dataclass
class _Attempt:
    """The known facts of one attempt. asked[r]: the steps for which rank r has received numbers."""

    size: int
    found: dict[str, Any]
    asked: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[int, list[list[int]]] = field(default_factory=lambda: defaultdict(list))
    named: set[str] = field(default_factory=set)
    opened: int = 0
    events: int = 0
    died: tuple[int, str] | None = None
    read: int = 0
    changed: dict[str, Any] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """Return the attempt in the judge's form. first: the step at which it resumed, if steps have numbers.

        steps: the steps of rank 0, in the order of running them.
        """
        by_rows = any(rows for steps in self.rows.values() for rows in steps)
        firsts = [steps[0] for _, steps in sorted(self.asked.items()) if steps and not by_rows]
        told: dict[str, Any] = {name: getattr(self, name) for name in ("found", "read", "opened")}
        told |= {"named": sorted(self.named), "rows": [self.rows[r] for r in range(self.size)]}
        told |= {"first": firsts[0], "steps": self.asked[0]} if firsts else {}
        return told | ({"died": list(self.died)} if self.died is not None else {})


class RandomNumbers:
    """Numbers drawn at their first request, so that no worker can know them in advance.

    They are stored by the kernel, in an unlinked file, because workers are forked from this process and
    inherit its memory. (The sandbox refuses memfd_create.)
    """

    def __init__(self) -> None:
        self._fd, name = tempfile.mkstemp()
        os.unlink(name)

    def __getitem__(self, index: int) -> float:
        index %= 1 << 16  # an answer may ask for row -1, or for a row that does not exist
        (found,) = struct.unpack("d", os.pread(self._fd, 8, 8 * index).ljust(8, b"\0"))
        if not found:
            found = random.SystemRandom().uniform(-1, 1)
            os.pwrite(self._fd, struct.pack("d", found), 8 * index)
        return float(found)

    def all_drawn(self) -> list[float]:
        """Return all numbers, with 0 for numbers not requested by any worker."""
        size = os.fstat(self._fd).st_size
        return [number for (number,) in struct.iter_unpack("d", os.pread(self._fd, size, 0))]

    def close(self) -> None:
        os.close(self._fd)


@dataclass
class FolderMonitor(Monitor):
    """Monitors a job that writes checkpoints.

    It runs no code of the answer, and verifies the workers' reports where it can.

    only_rank0_writes: whether to terminate the job as soon as a rank other than 0 changes a file, because
    this is already wrong.
    numbers: the number of each step, or of each row if a step trains rows, without which no rank can train.
    """

    folder: Path
    watch: FolderWatch
    plans: Sequence[Plan]
    only_rank0_writes: bool
    numbers: RandomNumbers = field(default_factory=RandomNumbers)
    attempts: list[_Attempt] = field(default_factory=list)
    intruder: int | None = None

    def begin(self, attempt: int, size: int) -> None:
        self.attempts.append(_Attempt(size, _whole_files(self.folder)))

    def end(self) -> None:
        self.attempts[-1].changed = self.watch.take_changes().as_plain()

    def close_in_worker(self) -> None:
        self.numbers.close()

    def answer(self, rank: int, question: list[Any]) -> Any:
        kind, *said = question
        answers: dict[str, Callable[..., Any]] = {
            "step": self._answer_step,
            "done": self._answer_done,
            "event": self._answer_event,
            "found": self._answer_found,
        }
        return answers[kind](rank, *said)

    def _answer_step(self, rank: int, step: int, read: int, rows: Sequence[int] | None) -> Any:
        """Return the numbers needed by a step: the step's number, or the numbers of its rows."""
        now = self.attempts[-1]
        if not now.asked[rank] and rank == 0:
            now.read = int(read)
        numbers = [self.numbers[int(index)] for index in ([step] if rows is None else rows)]
        now.asked[rank].append(int(step))
        now.rows[rank].append([int(row) for row in rows or ()])
        return numbers

    def _answer_done(self, rank: int, step: int) -> Any:
        """Kill the last rank after its step if this is planned. Every rank must have begun the step."""
        now = self.attempts[-1]
        all_there = all(step in now.asked[other] for other in range(now.size))
        dies = (
            step == self._current_plan().step
            and rank == now.size - 1
            and all_there
            and now.died is None
        )
        return Intervention.KILL if dies else None

    def _answer_event(self, rank: int, what: str, path: str, done: int, save: int) -> Any:
        """Count an event of a rank's file, and kill the rank if this is the planned event."""
        now, plan, where = self.attempts[-1], self._current_plan(), Path(path)
        inside = where.parent == self.folder or self.folder in where.parents
        if what not in EVENTS or not inside:
            return None
        if what in (OPENED, NEW_NAME):
            now.named.add(where.name)
        now.opened += what == OPENED
        if self.only_rank0_writes and rank:
            self.intruder = rank
            return Intervention.STOP
        if rank != plan.rank or save < plan.save or not self._is_confirmed(what, where):
            return None
        now.events += 1
        if now.events != plan.event:
            return None
        if what == HALF_WRITTEN:  # truncate by name: the kernel does not report that as a close
            os.truncate(where, where.stat().st_size // 2)
        now.died = min(int(done), 1 + max(now.asked[rank], default=-1)), what
        return Intervention.KILL

    def _is_confirmed(self, what: str, where: Path) -> bool:
        """Return whether the disk and the kernel's events confirm a rank's report."""
        if what == REMOVED:
            return not where.exists()
        seen = where.name in self.watch.peek_changes().names
        if what == HALF_WRITTEN and where.is_symlink():
            return False
        return where.exists() and (seen or what == OPENED)

    def _answer_found(self, rank: int, whole: list[str]) -> None:
        """Trust a rank's report of whole checkpoints. Reading DCP's metadata here would unpickle it."""
        self.attempts[-1].found["whole"] = [str(name) for name in whole]

    def _current_plan(self) -> Plan:
        number = len(self.attempts)
        return self.plans[number - 1] if number <= len(self.plans) else Plan()


def run_attempts(
    script: Path, sizes: Sequence[int], plans: Sequence[Sequence[int]], only_rank0_writes: bool
) -> dict[str, Any]:
    """Run a job of these sizes, one attempt after another; return its report.

    Each rank's value contains the known facts about the attempts, even if the rank returned no value.
    """
    folder = checkpoint_folder(script.parent)
    with watch_folder(folder) as watch:
        monitor = FolderMonitor(folder, watch, [Plan(*plan) for plan in plans], only_rank0_writes)
        found = run_with_forked_workers(script, sizes, timeout_s=ATTEMPTS_S, monitor=monitor)
    told = {
        "attempts": [attempt.as_plain() for attempt in monitor.attempts],
        "changed": [attempt.changed for attempt in monitor.attempts],
        "killed": found["killed"],
        "intruder": monitor.intruder,
        "numbers": monitor.numbers.all_drawn(),
    }
    monitor.numbers.close()
    values = found["values"]
    if monitor.intruder is None and any(isinstance(value, dict) for value in values):
        found["values"] = [value | told if isinstance(value, dict) else value for value in values]
    else:
        found["values"] = [told] * sizes[-1]
    return found


def run_replicas(
    script: Path,
    replicas: int,
    monitor: Monitor,
    killed_replica: int,
    timeout_s: float = REPLICAS_S,
) -> dict[str, Any]:
    """Run a job in which replicas continue after another's death. The monitor may kill `killed_replica`.

    Its death is reported by the process that starts the replicas, not by files of the replica.
    """
    found = run_with_forked_workers(
        script, replicas, timeout_s=timeout_s, keep_others_running=True, monitor=monitor
    )
    if killed_replica in found["killed"][0]:
        found["exits"][killed_replica] = 0
        found["values"][killed_replica] = {"killed": True}
    return found


# --- in a worker ----------------------------------------------------------------------------------


@contextmanager
def join_attempt(done: Callable[[], int], save: Callable[[], int] = int) -> Iterator[DiskReporter]:
    """Join this attempt's group, and report changes to the files in its `folder` within the block.

    done, save: functions that return the number of finished steps, and of begun saves.
    """
    # a rendezvous through a file is immediate, but a store over TCP might take 0.3 s
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    join(folder_of_script() / f"rendezvous {attempt_number()}", rank, size)
    disk = DiskReporter(checkpoint_folder(folder_of_script()), done, save)
    yield disk
    disk.stop()
    dist.destroy_process_group()


def attempt_number() -> int:
    """Return the number of this attempt, counting from 0."""
    return int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def folder_of_script() -> Path:
    return Path(sys.argv[0]).resolve().parent


def checkpoint_folder(script_folder: Path) -> Path:
    """Return the folder for checkpoints, which is shared by all attempts."""
    folder = script_folder.resolve() / "checkpoints"
    folder.mkdir(exist_ok=True)
    return folder


def ask_for_step(step: int, read: int, rows: Sequence[int] | None = None) -> list[float]:
    """Ask for the number of a step, or for the numbers of its rows. read: the number of read files."""
    numbers: list[float] = ask("step", step, read, rows)
    return numbers


def join(file: Path, rank: int, size: int) -> None:
    """Join a group whose ranks meet at a file."""
    store = FileStore(str(file), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, or for several seconds if it never holds."""
    give_up = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < give_up:
        time.sleep(0.002)


def _whole_files(folder: Path) -> dict[str, list[str]]:
    """Return a folder's files, and the whole ones: torch.save writes the directory of its zip file last."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    whole = [path.name for path in files if zipfile.is_zipfile(path)]
    return {"files": [path.name for path in files], "whole": whole}
