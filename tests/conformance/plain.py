"""Run a program in new interpreters, like its author: by mp.spawn, or as a torchrun job.

The script is the program's source followed by code that starts it. All of its processes are killed in any
case. They are found by a mark that they inherit in their environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from helpers.jobs.ports import free_port
from tests.conformance.entry import Entry
from tests.conformance.in_rank import FOLDER
from tests.conformance.outcome import HANG, VALUE, Outcome, says_that_a_peer_went

ROOT = Path(__file__).parents[2]
START_S, BUDGET_S, HANG_S, LEAVE_S = 150.0, 90.0, 6.0, 5.0
MARK = "CONFORMANCE_MARK"

_SPAWN = """

if __name__ == "__main__":
    from tests.conformance.in_rank import spawn

    spawn(main, {world_size}, {init})
"""
_TORCHRUN = """

if __name__ == "__main__":
    from tests.conformance.in_rank import torchrun_worker

    torchrun_worker(main, {init})
"""


def run_plainly(entry: Entry) -> Outcome:
    """Run a program to its end, or to the end of its budget, and return its outcome."""
    began, mark = time.monotonic(), secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="cf-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        job = _start(entry, place, mark)
        try:
            in_time = _wait(job, entry, place)
        finally:
            _end_all(job, mark)
        return _Ends(entry, place, in_time).outcome(time.monotonic() - began)


def _start(entry: Entry, place: Path, mark: str) -> subprocess.Popen[bytes]:
    for name in ("notes", "work", "temp"):
        (place / name).mkdir()
    script = place / "program.py"
    tail = _TORCHRUN if entry.like == "torchrun" else _SPAWN
    script.write_text(entry.source + tail.format(world_size=entry.world_size, init=entry.init))
    command = [sys.executable, str(script)]
    if entry.like == "torchrun":
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        command[1:1] = [*torchrun, str(entry.world_size)]
    given = {
        FOLDER: str(place / "notes"),
        MARK: mark,
        "TMPDIR": str(place / "temp"),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    with (place / "said").open("wb") as said:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=place / "work",
            env={**os.environ, **given},
            start_new_session=True,
        )


def _wait(job: subprocess.Popen[bytes], entry: Entry, place: Path) -> bool:
    """Wait for the job's end. Its budget starts when all ranks have begun."""
    deadline, begun, ended = time.monotonic() + START_S, False, False
    while job.poll() is None:
        if not begun and len(list(place.glob("notes/began-*"))) == entry.world_size:
            begun = True
            deadline = time.monotonic() + (HANG_S if entry.hangs else BUDGET_S)
        if not ended and len(list(place.glob("notes/end-*"))) == entry.world_size:
            ended = True  # only the exit of the interpreters remains, which adds nothing
            deadline = time.monotonic() + LEAVE_S
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _end_all(job: subprocess.Popen[bytes], mark: str) -> None:
    """Kill every process of the job, including processes in other sessions, such as torchrun's workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                process.kill()


class _Ends:
    """The files with the outcomes recorded by the ranks of a job, and by the job as a whole."""

    def __init__(self, entry: Entry, place: Path, in_time: bool) -> None:
        self.entry, self.place, self.in_time = entry, place, in_time
        self.ranks = range(entry.world_size)
        self.ends = [self._note(f"end-{rank}") for rank in self.ranks]
        self.job = self._note("job") or {}
        self.said = (place / "said").read_text(errors="replace")

    def _note(self, name: str) -> dict[str, Any] | None:
        file = self.place / "notes" / name
        return json.loads(file.read_text()) if file.exists() else None

    def _output(self, rank: int) -> str:
        file = self.place / "notes" / f"output-{rank}"
        return file.read_text(errors="replace") if file.exists() else ""

    def outcome(self, seconds: float) -> Outcome:
        """Find the root cause: the first independent error, otherwise a death, otherwise any error."""
        kind, rank, message = self._kind()
        values = tuple(end["value"] for end in self.ends if end and "value" in end)
        return Outcome(
            kind,
            values if kind == VALUE else (),
            tuple(self._output(rank) for rank in self.ranks),
            rank,
            message,
            seconds=round(seconds, 2),
        )

    def _kind(self) -> tuple[str, int | None, str]:
        errors = [
            (end["when_ns"], rank, end["error"], end["message"])
            for rank, end in enumerate(self.ends)
            if end and "error" in end
        ]
        own = sorted(error for error in errors if not says_that_a_peer_went(*error[2:]))
        if own:
            _, rank, kind, message = own[0]
            return kind, rank, message
        if died := self._died():
            return died
        if errors:
            _, rank, kind, message = min(errors)
            return kind, rank, message
        if all(self.ends):
            return VALUE, None, ""
        if not self.in_time:
            still = [rank for rank in self.ranks if self.ends[rank] is None]
            return HANG, None, f"ranks {still} had not ended"
        return self._said_at_the_start()

    def _died(self) -> tuple[str, int, str] | None:
        """Return the first rank that ended without a message, if any, with its failure."""
        rank = self.job.get("rank")
        if rank is not None and self.ends[rank] is None:
            signal_name = self.job["signal"]
            return signal_name or f"exit {self.job['exit']}", rank, self._last_words(rank)
        # torchrun prints tables of failures, and the last table has the root cause
        root = self.said.rpartition("Root Cause")[2]
        found = re.search(r"rank\s*:\s*(\d+).*\n.*exitcode\s*:\s*(-?\d+)", root)
        if found and self.ends[int(found[1])] is None:
            code, rank = int(found[2]), int(found[1])
            kind = signal.Signals(-code).name if code < 0 else f"exit {code}"
            return kind, rank, self._last_words(rank)
        silent = [rank for rank in self.ranks if self.ends[rank] is None]
        if self.in_time and silent and self.job.get("rank") is None and "job" in self._names():
            # The rank exited by os._exit(0), which counts as a success for the job
            return "exit 0", silent[0], ""
        return None

    def _last_words(self, rank: int) -> str:
        return (self._output(rank).strip() or self.said.strip()).rsplit("\n", 1)[-1]

    def _names(self) -> set[str]:
        return {file.name for file in (self.place / "notes").iterdir()}

    def _said_at_the_start(self) -> tuple[str, int | None, str]:
        """Describe a script that failed before its ranks began. Its last line names the error."""
        last = self.said.strip().rsplit("\n", 1)[-1]
        kind, _, message = last.partition(": ")
        return kind.rsplit(".", 1)[-1], None, message
