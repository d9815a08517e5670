"""mpiexec(): real MPI ranks, their output and failures, and the absence of leftover processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from helpers.checks.scripts import Source, compose
from helpers.exercises.nb22_launchers_and_backends.in_ranks.mpi import run_under_mpiexec
from helpers.jobs.mpiexec import MpiFailed, mpiexec
from helpers.ranks.failures import LaunchError
from helpers.views.job_lanes import mpi_html, mpi_text


def _turkish() -> str:
    """Return the name of an installed Turkish locale, or ""."""
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, timeout=20).stdout
    return next((name for name in known.split() if name.startswith("tr_TR.")), "")


TURKISH = _turkish() if shutil.which("locale") else ""
HEAD = "from mpi4py import MPI\nworld = MPI.COMM_WORLD\n"


@pytest.mark.skipif(not TURKISH, reason="there is no Turkish locale here")
def test_mpi_starts_in_turkish_locale() -> None:
    program = "from helpers import mpiexec\nfrom mpi4py import MPI\nprint(MPI.COMM_WORLD.size)"
    env = {**os.environ, "LC_ALL": TURKISH}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "1\n", done.stderr


def script(folder: Path, body: str) -> Path:
    path = folder / "job.py"
    path.write_text(HEAD + body)
    return path


def left_behind(mark: str) -> list[int]:
    """Return the processes whose environment has a variable with this value."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("JOB_MARK") == mark:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_mpi_ranks_communicate_in_separate_lanes(tmp_path: Path) -> None:
    path = script(tmp_path, "print('sum', world.allreduce(world.rank + 1), 'of', world.size)\n")
    run = mpiexec(path, 3)
    assert run.output == ("sum 6 of 3\n",) * 3
    assert mpi_text(run).splitlines() == [
        "mpiexec -n 3 python job.py",
        *[f"  rank {rank} | sum 6 of 3" for rank in range(3)],
    ]
    assert "rank 2" in mpi_html(run)


def test_passes_arguments_and_environment_to_ranks(tmp_path: Path) -> None:
    path = script(tmp_path, "import os, sys\nprint(sys.argv[1:], os.environ['COLOUR'])\n")
    assert mpiexec(path, 1, args=["a", "b"], env={"COLOUR": "red"}).output == ("['a', 'b'] red\n",)


def test_mpi4py_exception_ends_all_ranks(tmp_path: Path) -> None:
    path = script(
        tmp_path, "if world.rank == 1:\n    raise ValueError('bad shard')\nworld.Barrier()\n"
    )
    with pytest.raises(
        MpiFailed, match="the error output of rank 1 ends with: ValueError: bad shard"
    ) as failed:
        mpiexec(path, 3, module="mpi4py", timeout=20)
    assert failed.value.run is not None and "ValueError: bad shard" in failed.value.run.errors[1]


@pytest.mark.extended
def test_timeout_ends_all_mpi_ranks(tmp_path: Path) -> None:
    path = script(tmp_path, "print('here', flush=True)\nif world.rank == 0:\n    world.recv()\n")
    run = mpiexec(path, 2, timeout=1.5, on_failure="return", env={"JOB_MARK": str(tmp_path)})
    assert run.exitcode is None and "timed out after 1.5 s" in str(run.failure)
    assert run.output == ("here\n", "here\n")
    assert left_behind(str(tmp_path)) == []


def test_killed_rank_ends_job(tmp_path: Path) -> None:
    body = "import os\nif world.rank == 1:\n    os.kill(os.getpid(), 9)\nworld.Barrier()\n"
    run = mpiexec(script(tmp_path, body), 2, on_failure="return", timeout=20)
    assert run.exitcode and "exited with code" in str(run.failure)


@pytest.mark.parametrize("n", [0, 65])
def test_rejects_unstartable_programs(tmp_path: Path, n: int) -> None:
    with pytest.raises(LaunchError, match="between 1 and 64"):
        mpiexec(script(tmp_path, ""), n)
    with pytest.raises(LaunchError, match="no script"):
        mpiexec(tmp_path / "nowhere.py")


def gathered(answer: object, number: int) -> object:
    from mpi4py import MPI

    value = answer(MPI.COMM_WORLD.rank + number)  # type: ignore[operator]
    return MPI.COMM_WORLD.allgather(value)


@pytest.mark.extended
@pytest.mark.extended
@pytest.mark.extended
@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        pytest.param("def f(x):\n    return x * x\n", [[100, 121, 144]] * 3, None, id="values"),
        pytest.param(
            "def f(x):\n    return 1 // (x - 11)\n",
            None,
            "division",
            id="exception",
            marks=pytest.mark.extended,
        ),
    ],
)
def test_composed_script_reports_values_or_exception(
    text: str, values: list[object] | None, message: str | None
) -> None:
    path = compose(Source(text, "f"), gathered, [10])
    said = run_under_mpiexec(path, 3, timeout_s=20)
    if values is not None:
        assert said["values"] == values
    else:
        errors = [error for error in said["errors"] if error]
        assert errors and message in errors[0]["message"]
