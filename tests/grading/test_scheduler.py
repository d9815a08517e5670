"""`course grade --scheduler`: a real Dask cluster gives the points that local processes give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.grading.record import read_records
from tests.grading.notebooks import RIGHT, WRONG, write_notebook

COURSE = [sys.executable, "-m", "helpers.course.cli"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A scheduler and a worker, started as their manual says; gives the scheduler's address."""
    file = tmp_path / "scheduler.json"
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "distributed.cli"]
    where = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen(
        [f"{dask[0]}", "-m", "distributed.cli.dask_scheduler", "--port", "0", *where], **options
    )
    worker = None
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        alone = ["--nworkers", "1", "--nthreads", "1", "--local-directory", str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", *alone, *where],
            env=environment,
            **options,
        )
        yield json.loads(file.read_text())["address"]
    finally:
        for process in (worker, scheduler):
            if process is not None:
                process.terminate()
                process.wait(30)


def grade(folder: Path, out: Path, address: str) -> subprocess.CompletedProcess[str]:
    command = [*COURSE, "grade", str(folder), "--out", str(out), "--scheduler", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=230)


@pytest.mark.usefixtures("plan")
def test_a_cluster_gives_what_local_processes_give(tmp_path: Path, cluster: str) -> None:
    for learner, cell in (("anna", RIGHT), ("bela", WRONG)):
        write_notebook(tmp_path / "class" / learner / "02_blocking_p2p.ipynb", cell)
    (tmp_path / "class" / "cyd.ipynb").write_text("{")
    done = grade(tmp_path / "class", tmp_path / "out", cluster)
    told = [record.message for record in read_records(tmp_path / "out")]
    assert "2 of 3 submissions graded; 1 cannot be read." in done.stdout, told
    points = {record.learner: record.points for record in read_records(tmp_path / "out")}
    assert points == {"anna": 10.0, "bela": 0.0, "cyd": 0.0}


@pytest.mark.usefixtures("plan")
def test_no_scheduler_is_one_clear_line(tmp_path: Path) -> None:
    write_notebook(tmp_path / "class" / "anna.ipynb", RIGHT)
    done = grade(tmp_path / "class", tmp_path / "out", "tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.startswith("Cannot grade: no Dask scheduler answers at tcp://127.0.0.1:1")
