"""Real torchrun agents: each worker's results are returned, and no part of a job outlives it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from helpers.jobs.owned import OwnedPrograms
from helpers.jobs.run import TorchrunFailed, TorchrunRun
from helpers.jobs.torchrun import start_torchrun, torchrun
from helpers.ranks.failures import LaunchError
from helpers.views.job_lanes import agents_html, agents_text

QUIET = """
import os, sys
print("rank", os.environ["RANK"], "local", os.environ["LOCAL_RANK"], "node", os.environ["GROUP_RANK"])
print("to stderr", file=sys.stderr)
"""
SLEEPS = """
import os, time
print("ready", flush=True)
time.sleep(600)
"""
FAILS = """
import os
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("shard 17 is empty")
    import time
    time.sleep(600)
main()
"""
DIES_ONCE = """
import os
import torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if dist.get_rank() == 1:
        os.kill(os.getpid(), 9)
    dist.barrier()
print("sum", x.item())
dist.destroy_process_group()
"""
GROWS = """
import os, time
from pathlib import Path
print("world", os.environ["WORLD_SIZE"], flush=True)
while os.environ["WORLD_SIZE"] == "1":
    time.sleep(0.05)
"""
CURE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""A separate store for each round. Otherwise workers find stale addresses, and newcomers wait forever."""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(source: str) -> Path:
        path = tmp_path / "job.py"
        path.write_text(source)
        return path

    return write


@pytest.mark.extended
def test_installed_torchrun_accepts_every_flag(script: Callable[[str], Path]) -> None:
    from helpers.jobs.torchrun import JobOptions

    options = {
        word.partition("=")[0]
        for rdzv, nnodes in (("static", 2), ("c10d", 1), ("c10d", "1:3"))
        for word in JobOptions(script(QUIET), 2, nnodes, rdzv=rdzv, max_restarts=1).options(4711)
        if word.startswith("--")
    } | {"--node-rank", "--log-dir", "--tee"}
    command = [sys.executable, "-m", "torch.distributed.run", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    known = set(re.findall(r"--[a-z-]+", said))
    assert options <= known, options - known


@pytest.mark.extended
def test_single_agent_returns_output_by_worker(script: Callable[[str], Path]) -> None:
    run = torchrun(script(QUIET), 2)
    assert run.output == ["rank 0 local 0 node 0\n", "rank 1 local 1 node 0\n"]
    assert [worker.errors for worker in run.workers] == ["to stderr\n", "to stderr\n"]
    assert [agent.exitcode for agent in run.agents] == [0]
    assert "rank 1 (local_rank 1) | rank 1 local 1 node 0" in agents_text(run)
    assert "rank 1 local 1 node 0" in agents_html(run)


@pytest.mark.extended
def test_two_static_agents_form_two_nodes(script: Callable[[str], Path]) -> None:
    run = torchrun(script(QUIET), 2, nnodes=2, rdzv="static")
    assert run.output[3] == "rank 3 local 1 node 1\n"
    assert [(w.rank, w.local_rank, w.node) for w in run.workers] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 0, 1),
        (3, 1, 1),
    ]
    assert not re.search(r"\d{5}|/", agents_text(run)), "a port, a process id or a path is shown"


def test_recorded_exception_becomes_failure(script: Callable[[str], Path]) -> None:
    with pytest.raises(TorchrunFailed, match="rank 1 .*ValueError: shard 17 is empty") as caught:
        torchrun(script(FAILS), 2)
    assert isinstance(caught.value.run, TorchrunRun)
    assert "line 7, in main" in caught.value.run.workers[1].traceback
    assert "shard 17 is empty" in repr(caught.value.run)


@pytest.mark.extended
def test_restart_adds_second_round(script: Callable[[str], Path]) -> None:
    run = torchrun(script(DIES_ONCE), 2, max_restarts=1, env=CURE)
    assert [(made.restart, made.ending) for made in run.rounds] == [(0, "failed"), (1, "succeeded")]
    assert run.rounds[0].workers[1].exitcode == -signal.SIGKILL
    assert run.output == ["sum 2.0\n", "sum 2.0\n"]


@pytest.mark.extended
def test_timeout_ends_hanging_job(script: Callable[[str], Path]) -> None:
    run = torchrun(script(SLEEPS), 2, timeout=4, on_failure="return")
    assert run.failure is not None and "timed out after 4 s" in str(run.failure)


@pytest.mark.extended
def test_joining_node_enlarges_world(script: Callable[[str], Path]) -> None:
    with start_torchrun(script(GROWS), 1, nnodes="1:2", env=CURE, timeout=30) as job:
        job.wait_for("world 1")
        assert [worker.world_size for worker in job.workers()] == [1]
        job.add_node()
        run = job.wait()
    assert run.ok, run
    assert run.output == ["world 2\n", "world 2\n"]
    assert [made.ending for made in run.agents[0].rounds] == ["membership changed", "succeeded"]


@pytest.mark.extended
def test_kills_worker_by_rank(script: Callable[[str], Path]) -> None:
    with start_torchrun(script(SLEEPS), 2) as job:
        job.wait_for("ready", 2)
        with pytest.raises(LookupError, match="alive: 0, 1"):
            job.kill(7)
        job.kill(1)
        run = job.wait()
    assert str(run.failure) == "rank 1 (node 0, local_rank 1) was terminated by SIGKILL."


@pytest.mark.extended
def test_leaving_block_ends_all_workers(script: Callable[[str], Path]) -> None:
    with start_torchrun(script(SLEEPS), 2) as job:
        job.wait_for("ready", 2)
        pids = [worker.pid for worker in job.workers()]
        assert len(pids) == 2
    assert not any(map(psutil.pid_exists, pids))


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_starter_leaves_no_processes(number: int, tmp_path: Path) -> None:
    job, starter = tmp_path / "job.py", tmp_path / "starter.py"
    job.write_text(SLEEPS)
    starter.write_text(
        "from helpers.jobs.torchrun import start_torchrun\n"
        f"with start_torchrun({str(job)!r}, 2) as job:\n"
        "    job.wait_for('ready', 2)\n"
        "    print(*[worker.pid for worker in job.workers()], job.owned.folder, flush=True)\n"
        "    job.wait()\n"
    )
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, str(starter)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        assert process.stdout is not None
        *pids, folder = process.stdout.readline().split()
        assert len(pids) == 2
        process.send_signal(number)
        process.wait(10)
    deadline = time.monotonic() + 5
    while any(psutil.pid_exists(int(pid)) for pid in pids) or Path(folder).exists():
        assert time.monotonic() < deadline, "workers or their folder are left"
        time.sleep(0.02)


def test_caps_stored_program_output() -> None:
    from helpers.jobs.supervisor import MAX_OUTPUT_BYTES

    with OwnedPrograms() as owned:
        program = "while True: print('x' * 1000)"
        owned.start("loud", [sys.executable, "-c", program], env=dict(os.environ), cwd="/")
        deadline = time.monotonic() + 20
        while sum(len(piece.text) for piece in owned.pieces("loud")) < MAX_OUTPUT_BYTES:
            assert time.monotonic() < deadline
            owned.poll(0.05)
        owned.end()
        assert sum(len(piece.text) for piece in owned.pieces("loud")) < MAX_OUTPUT_BYTES + (1 << 17)
        assert owned.exits["loud"] == -signal.SIGKILL


def test_reports_missing_program() -> None:
    with OwnedPrograms() as owned, pytest.raises(OSError, match="no-such-program"):
        owned.start("gone", ["no-such-program"], env={}, cwd="/")


def test_reports_wrong_arguments_before_start(script: Callable[[str], Path]) -> None:
    with pytest.raises(LaunchError, match="no script"):
        torchrun("nowhere.py")
    with pytest.raises(LaunchError, match="a range needs"):
        torchrun(script(QUIET), nnodes="1:2", rdzv="static")
    with pytest.raises(LaunchError, match="rdzv must be"):
        torchrun(script(QUIET), rdzv="etcd")
