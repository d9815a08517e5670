"""`course grade --scheduler`: a real Dask cluster gives the same points as local processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.grading.record import read_records
from tests.grading.generated import make_class
from tests.grading.notebooks import RIGHT, WRONG, write_notebook
from tests.grading.test_class import COURSE, assert_as_expected


@dataclass(frozen=True)
class Cluster:
    """A scheduler's address, and its workers."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def started(folder: Path, workers: int, *more: str) -> Iterator[Cluster]:
    """Start a scheduler and workers as described in Dask's manual."""
    file = folder / "scheduler.json"
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    python = [sys.executable, "-m"]
    where = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    running = [
        subprocess.Popen(
            [*python, "distributed.cli.dask_scheduler", "--port", "0", *where], **options
        )
    ]
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        alone = ["--nworkers", "1", "--nthreads", "1", "--local-directory", str(folder), *more]
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        command = [*python, "distributed.cli.dask_worker", *alone, *where]
        running += [subprocess.Popen(command, env=environment, **options) for _ in range(workers)]
        yield Cluster(json.loads(file.read_text())["address"], running[1:])
    finally:
        for process in reversed(running):
            process.terminate()
        for process in reversed(running):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    with started(tmp_path, 1) as cluster:
        yield cluster.address


def grade(
    folder: Path, out: Path, address: str, seconds: float = 230
) -> subprocess.CompletedProcess[str]:
    command = [*COURSE, "grade", str(folder), "--out", str(out), "--scheduler", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds)


@pytest.mark.extended
@pytest.mark.usefixtures("plan")
def test_cluster_grades_like_local_processes(tmp_path: Path, cluster: str) -> None:
    for learner, cell in (("anna", RIGHT), ("bela", WRONG)):
        write_notebook(tmp_path / "class" / learner / "02_blocking_p2p.ipynb", cell)
    (tmp_path / "class" / "cyd.ipynb").write_text("{")
    done = grade(tmp_path / "class", tmp_path / "out", cluster)
    told = [record.message for record in read_records(tmp_path / "out")]
    assert "2 of 3 submissions graded; 1 cannot be read." in done.stdout, told
    points = {record.learner: record.points for record in read_records(tmp_path / "out")}
    assert points == {"anna": 10.0, "bela": 0.0, "cyd": 0.0}


@pytest.mark.extended
@pytest.mark.usefixtures("plan")
def test_missing_scheduler_error_fits_one_line(tmp_path: Path) -> None:
    write_notebook(tmp_path / "class" / "anna.ipynb", RIGHT)
    done = grade(tmp_path / "class", tmp_path / "out", "tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.startswith("Cannot grade: no Dask scheduler answers at tcp://127.0.0.1:1")


@pytest.mark.soak
@pytest.mark.usefixtures("plan")
@pytest.mark.timeout(4 * 3600)
def test_lost_worker_changes_no_points(tmp_path: Path) -> None:
    """No points change, because the other workers grade the lost worker's submissions."""
    count = int(os.environ.get("REAL_RANKS_CLASS", "1000"))
    expected = make_class(tmp_path / "class", count)
    began = time.monotonic()
    with started(tmp_path, 3, "--no-nanny") as cluster:
        lost = threading.Timer(count * 0.5, cluster.workers[0].kill)
        lost.start()
        done = grade(tmp_path / "class", tmp_path / "out", cluster.address, 3 * 3600)
        lost.cancel()
    assert cluster.workers[0].returncode == -signal.SIGKILL, "it was to be lost on the way"
    assert_as_expected(tmp_path / "out", expected)
    print(f"\n{count} submissions on three workers: {time.monotonic() - began:.0f} s")
    assert "submissions graded" in done.stdout
