"""After SIGKILL at any moment, `course grade` continues when run again, and leaves nothing running."""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from helpers.grading.record import Status, read_records
from tests.grading.generated import Expected, make_class
from tests.grading.test_class import assert_as_expected

COURSE = [sys.executable, "-m", "helpers.course.cli"]
GONE_S = 20.0
"""Time limit for processes of a killed run to exit. On a busy machine, a rank server that is importing torch
notices only afterwards that its launcher exited."""
EVERYTHING = 1_000_000
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Moment:
    """The moment of a kill: `files` stored files after the previous run's, and `delay_s` later.

    Files are counted in addition to seconds, so that kills reach each part of a run on any machine.
    worker: kill one of its processes first, and the run after the same delay again.
    """

    files: int
    delay_s: float
    worker: bool = False


@dataclass(frozen=True)
class Leftovers:
    """The state after all processes of a killed run have exited."""

    seconds: float
    gone_s: float
    """Time from the kill until its last process exited."""
    records: dict[str, tuple[int, int]]
    """Graded submissions: the record's name -> the file's identity (inode, time)."""
    exercises: dict[str, tuple[int, int]]
    lines: int
    """Number of lines in the run log."""


@dataclass
class Batch:
    """A `course grade` that is killed and started again, with a private temp folder."""

    folder: Path
    out: Path
    temp: Path
    before: frozenset[int]
    """The test's processes."""

    def start(self) -> subprocess.Popen[bytes]:
        self.temp.mkdir(exist_ok=True)
        return subprocess.Popen(
            [*COURSE, "grade", str(self.folder), "--out", str(self.out), "--jobs", "2"],
            env={**os.environ, "TMPDIR": str(self.temp)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill_at(self, moment: Moment, most_s: float = 900) -> Leftovers | None:
        """Start the batch and kill it at a moment; return None if it finished earlier."""
        began, wanted = time.monotonic(), len(self._files()) + moment.files
        process = self.start()
        try:
            while not self._done() and len(self._files()) < wanted and process.poll() is None:
                assert time.monotonic() < began + most_s, "it does not go on"
                time.sleep(0.005)
            if moment.worker:
                _wait(process, moment.delay_s)
                for worker in _workers(process)[:1]:
                    worker.kill()
            _wait(process, moment.delay_s)
            ended = process.poll() is not None
        finally:
            process.kill()
            process.wait()
        killed = time.monotonic()
        self.wait_until_ended()
        return None if ended else self._find_leftovers(killed - began, time.monotonic() - killed)

    def finish(self, most_s: float) -> int:
        """Run the batch to its end; return its exit code."""
        process = self.start()
        try:
            return process.wait(most_s)
        finally:
            process.kill()
            process.wait()

    def wait_until_ended(self) -> None:
        """Wait until no process of a killed run is left; all have become descendants of this process."""
        deadline = time.monotonic() + GONE_S
        while left := self._left():
            assert time.monotonic() < deadline, f"outlived the run: {left}"
            time.sleep(0.02)

    def _left(self) -> list[str]:
        left = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, ChildProcessError):
                if process.pid in self.before:
                    continue
                if process.status() != psutil.STATUS_ZOMBIE:
                    left.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
                elif process.ppid() == os.getpid():
                    os.waitpid(process.pid, os.WNOHANG)
        return left

    def _done(self) -> bool:
        there = len(list((self.out / "records").glob("*.json")))
        return there == len(list(self.folder.rglob("*.ipynb")))

    def _files(self) -> list[Path]:
        return [*self.out.glob("records/*.json"), *self.out.glob("cache/*/*.json")]

    def _find_leftovers(self, seconds: float, gone_s: float) -> Leftovers:
        graded = self.records(Status.GRADED) if (self.out / "records").is_dir() else {}
        log = self.out / "log.jsonl"
        return Leftovers(
            seconds,
            gone_s,
            {name: _identity(self.out / "records" / name) for name in graded},
            {str(path): _identity(path) for path in self.out.glob("cache/*/*.json")},
            len(log.read_bytes().splitlines()) if log.exists() else 0,
        )

    def records(self, status: Status) -> list[str]:
        """Return the records' file names, limited to records with a status."""
        paths = sorted((self.out / "records").glob("*.json"))
        return [p.name for p in paths if json.loads(p.read_text())["status"] == status.value]

    def log(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in (self.out / "log.jsonl").read_text().splitlines()]


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the grading processes of a run, starting with those that hold a sandbox."""
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children()
        workers = [each for each in children if each.status() != psutil.STATUS_ZOMBIE]
        return sorted(workers, key=lambda each: -len(each.children()))
    return []


def _identity(path: Path) -> tuple[int, int]:
    told = path.stat()
    return told.st_ino, told.st_mtime_ns


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[Batch]:
    """A batch below this process, which adopts all orphaned processes."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    before = frozenset(each.pid for each in psutil.Process().children(recursive=True))
    yield Batch(tmp_path / "class", tmp_path / "out", tmp_path / "temp", before)
    prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def assert_nothing_was_done_twice(batch: Batch, kept: list[Leftovers]) -> None:
    log = batch.log()
    for each in kept:
        again = {line["record"] for line in log[each.lines :]} & set(each.records)
        assert not again, f"graded again after a kill: {again}"
        for name, identity in each.records.items():
            assert _identity(batch.out / "records" / name) == identity, name
        for path, identity in each.exercises.items():
            assert _identity(Path(path)) == identity, f"tried again: {path}"


def assert_one_record_each(batch: Batch, expected: list[Expected]) -> None:
    learners = [record.learner for record in read_records(batch.out)]
    assert sorted(learners) == sorted(each.learner for each in expected)
    assert_as_expected(batch.out, expected)


def left_in(folder: Path) -> dict[str, int]:
    """Return the contents of a temp folder, with sizes in bytes."""
    return {
        path.name: sum(p.lstat().st_size for p in (path, *path.rglob("*")))
        for path in folder.iterdir()
    }


@pytest.mark.soak
@pytest.mark.usefixtures("plan")
@pytest.mark.timeout(3600)
def test_kills_neither_lose_nor_repeat_grades(batch: Batch) -> None:
    expected = make_class(batch.folder, 12, seed=3)
    rng = random.Random(5)
    early = [Moment(0, rng.uniform(0.1, 6.0)) for _ in range(6)]
    amid = [Moment(rng.randrange(8), rng.uniform(0.0, 3.0), rng.random() < 0.4) for _ in range(12)]
    late = [Moment(EVERYTHING, rng.uniform(0.0, 0.3)) for _ in range(2)]
    moments = [*rng.sample(early + amid, 18), *late]
    kept = []
    for number, moment in enumerate(moments, 1):
        while (found := batch.kill_at(moment)) is None:  # the run finished before the kill
            moment = replace(moment, delay_s=moment.delay_s / 2)
        kept.append(found)
        print(
            f"kill {number:2} after {found.seconds:5.1f} s{', a worker first' * moment.worker}: "
            f"{len(found.records)} submissions, {len(found.exercises)} exercises kept; "
            f"all gone after {found.gone_s:.1f} s"
        )
    left = left_in(batch.temp)
    readable = sum(each.readable for each in expected)
    assert batch.finish(900) == (0 if readable == len(expected) else 1)
    batch.wait_until_ended()
    assert_one_record_each(batch, expected)
    assert_nothing_was_done_twice(batch, kept)
    lines = [line for line in batch.log() if line["status"] == Status.GRADED.value]
    print(
        f"{len(kept)} kills, {len(lines)} lines for {readable} graded submissions; the killed runs left "
        f"{len(left)} folders of {sum(left.values()) >> 10:,} KB"
    )
    assert len(lines) <= readable + len(kept)
    assert set(left_in(batch.temp)) <= set(left), "the last run left something"
